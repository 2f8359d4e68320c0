"""``cobre-comm compile`` makes machine code before any job starts, unless there is some already."""

import pytest
from cobre_kernels.machine import made

from cobre_comm.cli import main


def test_it_says_where_the_machine_code_is(capsys):
    assert main(["compile"]) == 0
    assert capsys.readouterr().out == f"machine code: {made.file_of_this_machine()}\n"


def test_refusals_are_one_line(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["compile", "-n", "2"])
    assert caught.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("cobre-comm compile: error: ")
    assert "unrecognized arguments" in line


def test_no_machine_code_is_an_error(capsys, monkeypatch):
    def refuse():
        raise ImportError("no code")

    monkeypatch.setattr(made, "file_of_this_machine", refuse)
    assert main(["compile"]) == 1
    assert capsys.readouterr().err == "cobre-comm compile: error: no code\n"
