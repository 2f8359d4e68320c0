"""The README's examples run as they stand, on one rank and on two."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[3] / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


def run(command, cwd):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("number", range(len(EXAMPLES)), ids=["python", "njit"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_example(number, ranks, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(EXAMPLES[number])
    command = [sys.executable, "-m", "cobre_comm", "run", "-n", str(ranks), str(script)]
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == ranks
    expected = [
        f"rank {r} of {ranks}" if number == 0 else expected_total(ranks) for r in range(ranks)
    ]
    assert all(any(text in line for line in lines) for text in expected), done.stdout


def expected_total(ranks):
    # In iteration i each rank holds i * rank; 1000 iterations, summed over ranks.
    return str(float(1000 * sum(range(ranks))))


def test_there_are_two_examples_of_about_ten_lines():
    assert len(EXAMPLES) == 2
    for example in EXAMPLES:
        assert len([line for line in example.splitlines() if line.strip()]) <= 14


def test_the_commands_of_the_readme_exist():
    makefile = (README.parent / "Makefile").read_text()
    for target in re.findall(r"(?:^|`)make (\w+)", README.read_text(), flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
