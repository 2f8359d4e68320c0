"""The README's examples run as they stand, on one rank and on two."""

import re
from pathlib import Path

import pytest

from tests.command import python
from tests.grid import some

README = Path(__file__).parents[3] / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


def run_example(number, folder, *command):
    script = folder / "script.py"
    script.write_text(EXAMPLES[number])
    return python(*command, script, cwd=folder).stdout.splitlines()


@pytest.mark.parametrize(("number", "ranks"), some([(0, 1), (1, 2)], [(0, 2), (1, 1)]))
def test_example(number, ranks, tmp_path):
    lines = run_example(number, tmp_path, "-m", "cobre_comm", "run", "-n", str(ranks))
    assert len(lines) == ranks
    expected = [
        f"rank {r} of {ranks}" if number == 0 else expected_total(ranks) for r in range(ranks)
    ]
    assert all(any(text in line for line in lines) for text in expected), lines


def test_example_that_launches(tmp_path):
    assert run_example(2, tmp_path) == ["[3.0, 3.0, 3.0, 3.0]"]


def expected_total(ranks):
    # In iteration i each rank holds i * rank; 1000 iterations, summed over ranks.
    return str(float(1000 * sum(range(ranks))))


def test_it_is_short():
    assert len(EXAMPLES) == 3
    assert len(README.read_text().splitlines()) < 120
    for example in EXAMPLES:
        assert len([line for line in example.splitlines() if line.strip()]) <= 14


def test_the_commands_of_the_readme_exist():
    makefile = (README.parent / "Makefile").read_text()
    for target in re.findall(r"(?:^|`)make (\w+)", README.read_text(), flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
