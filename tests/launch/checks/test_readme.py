"""The README's example runs without changes, and prints what the README shows."""

import re
import shlex
from pathlib import Path

import pytest

from tests.command import python

README = Path(__file__).parents[3] / "README.md"
TEXT = README.read_text()
(EXAMPLE,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
(SHOWN,) = re.findall(r"```console\n(.*?)```", TEXT, flags=re.DOTALL)
(FIRST,) = re.findall(r"```sh\n(.*?)```", TEXT, flags=re.DOTALL)
COMMANDS = [block.splitlines() for block in SHOWN.split("$ ")[1:]]


@pytest.mark.parametrize(("command", "shown"), [(c, lines) for c, *lines in COMMANDS])
def test_the_example_prints_what_is_shown(command, shown, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(EXAMPLE)
    name, *words = shlex.split(command)
    start = {"cobre-comm": ["-m", "cobre_comm"], "python": []}[name]
    done = python(*start, *words, cwd=tmp_path)
    assert sorted(done.stdout.splitlines()) == sorted(shown)


def test_the_three_lines_at_the_top_run(tmp_path):
    """`make` and `pip install` are left out; the first line of the program follows `echo '`."""
    (program,) = re.findall(r"^echo '(.*?)' > hello\.py$", FIRST, flags=re.DOTALL | re.MULTILINE)
    (command,) = re.findall(r"^cobre-comm (.*)$", FIRST, flags=re.MULTILINE)
    assert len(program.splitlines()) == 3
    (tmp_path / "hello.py").write_text(program)
    lines = python("-m", "cobre_comm", *shlex.split(command), cwd=tmp_path).stdout.splitlines()
    said = [f"[{rank}] rank {rank} of 4: the sum over all ranks is 6" for rank in range(4)]
    assert sorted(lines) == said


def test_it_is_short():
    assert len(TEXT.splitlines()) < 100
    assert len([line for line in EXAMPLE.splitlines() if line.strip()]) <= 14


def test_the_commands_of_the_readme_exist():
    makefile = (README.parent / "Makefile").read_text()
    for target in re.findall(r"(?:^|`)make (\w+)", TEXT, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
