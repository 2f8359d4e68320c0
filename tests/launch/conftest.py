import os
import pathlib

import psutil
import pytest

from cobre_comm import cli
from cobre_comm.testing.cases.waiting import wait_until


def names():
    folder = pathlib.Path("/dev/shm")
    return {path.name for path in folder.glob(f"cobre-{os.getuid()}-*")}


@pytest.fixture
def refusal(capsys, monkeypatch):
    """Return a function that runs a wrong command line, and returns the one line of its error."""
    monkeypatch.setattr("cobre_comm.run.one_machine.run_job", lambda *_: pytest.fail("it started"))

    def refuse(words):
        try:
            status = cli.main([str(word) for word in words])
        except SystemExit as end:
            status = end.code
        output = capsys.readouterr()
        assert (status, output.out) == (2, "")
        assert output.err.count("\n") == 1
        return output.err

    return refuse


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """A test leaves no name in shared memory and no child; names of other jobs soon disappear."""
    before = names()
    children = set(psutil.Process().children(recursive=True))
    yield
    # The last poll of this wait decides, because afterwards another worker of pytest may begin a
    # job, with names of its own.
    assert wait_until(lambda: names() <= before), names() - before
    new = set(psutil.Process().children(recursive=True)) - children
    assert [p for p in new if "resource_tracker" not in " ".join(p.cmdline())] == []
