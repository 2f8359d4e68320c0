"""The recipes that readers download run without changes, on any number of ranks."""

import json
import re
from pathlib import Path

import pytest

from tests.command import python
from tests.launch.command import cobre, environment, lines_of

HOWTO = Path(__file__).parents[2] / "docs" / "howto"
LONGEST_PATTERN = 20  # lines; a reader copies a pattern by hand
NODES = {"COBRE_TEST_PRETEND_NODES": "0,0,1,1"}


def printed(program, ranks, *options, **extra):
    """Run a recipe; return the lines of each rank."""
    done = cobre("run", "-n", ranks, *options, HOWTO / program, **extra)
    assert (done.returncode, done.stderr) == (0, "")
    if ranks == 1:
        return [done.stdout.splitlines()]
    return [lines_of(done.stdout, rank) for rank in range(ranks)]


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((HOWTO / "patterns").glob("*.py")), ids=lambda p: p.stem)
def test_a_pattern_is_short_and_prints_the_same_on_any_number_of_ranks(path):
    assert len(path.read_text().splitlines()) <= LONGEST_PATTERN
    alone, together = (
        {re.sub(r"rank \d", "rank", line) for lines in printed(path, n) for line in lines}
        for n in (1, 3)
    )
    assert alone == together != set()


@pytest.mark.slow
def test_tables_are_the_same_on_one_machine_and_on_two():
    alone = printed("tables/inflows.py", 1)
    assert alone[0][0].startswith("driest: scenario 652 with 457.506")
    assert printed("tables/inflows.py", 3) == [*alone, [], []]
    assert printed("tables/several.py", 4, "--backend", "tcp", **NODES) == [*alone, [], [], []]


def test_rows_are_scattered():
    words = "rank 0 has rows 0 to 3", "rank 1 has rows 4 to 6", "rank 2 has rows 7 to 9"
    sums = 120.0, 258.0, 402.0
    expected = [[f"{w}; their sum is {s}"] for w, s in zip(words, sums, strict=True)]
    assert printed("scatter/scatter.py", 3) == expected
    ends = [int(lines[0].split()[6][:-1]) for lines in
            printed("scatter/scatter.py", 4, "--backend", "tcp", **NODES)]  # fmt: skip
    assert ends == [2, 5, 7, 9]


def test_one_rank_draws_the_progress_bar():
    [bar], *others = printed("progress/train.py", 3)
    assert re.match(r"bound 0\.9\d+ .* 100% ", bar)
    assert others == [[], []]


@pytest.mark.slow
def test_threads_and_ranks_find_the_same_mean(tmp_path):
    """From numba's cache, the second and third job load the code that the first has compiled."""
    program = tmp_path / "costs.py"
    program.write_text((HOWTO / "threads/costs.py").read_text())
    for ranks, threads in ((1, 2), (2, 1), (2, 2)):
        [line], *_ = printed(program, ranks, "--threads", threads)
        assert line == f"mean cost 249.98432318004419, by {ranks} ranks of {threads} threads"


def test_the_notebook_runs_and_has_the_code_of_its_page():
    cells = json.loads((HOWTO / "notebooks/ranks.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert "\n\n\n".join(code) + "\n" in (HOWTO / "notebooks.md").read_text()
    # A program from stdin has no file, and neither has the code of a notebook. So here too, the
    # function is sent to the ranks by value.
    program = "\n\n\n".join([*code[:-1], code[-1].replace("result.values", "print(result.values)")])
    done = python(input=program, env=environment())
    (largest, first), (same, second) = eval(re.sub(r"np\.float64\((.*?)\)", r"\1", done.stdout))
    assert largest == same == max(first, second)


def test_the_pods_are_as_many_as_the_launchers_expect():
    text = (HOWTO / "containers/job.yaml").read_text()
    numbers = re.findall(r"(?:completions:|parallelism:|--nnodes) (\d+)", text)
    assert len(numbers) == 3
    assert len(set(numbers)) == 1
    service, job = re.findall(r"^  name: (\w+)", text, flags=re.MULTILINE)
    assert f"subdomain: {service}\n" in text
    assert f"job-name: {job}\n" in text
    assert f"--coordinator {job}-0.{service} " in text
