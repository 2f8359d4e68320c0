"""The suite as the author of a backend meets it: by docs/howto/third-backends.md, word for word."""

import itertools
import os
import re
from pathlib import Path

import pytest

from cobre_comm.testing import cases
from cobre_comm.testing.conformance import FEATURES, PARTS, ConformanceSuite, Grid
from cobre_comm.testing.pairwise import choose
from cobre_comm.testing.suite.part import RUNS, TRIPLES, marked_trials
from tests.command import python
from tests.grid import OUR_GRID

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "third-backends.md").read_text()
WITHOUT_PYTEST = """
import sys
sys.modules["pytest"] = None
from cobre_comm.testing.cases import table
assert len(table()) > 10
try:
    from cobre_comm.testing.conformance import AllreduceTests
except ImportError as error:
    print(error)
"""


@pytest.fixture
def author(tmp_path):
    """Return the folder of an installed distribution, made of the files on the page."""
    for name, text in re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, flags=re.DOTALL):
        (tmp_path / name).write_text(text)
    entry = re.search(r'entry-points\."(.*?)"\]\n(\w+) = "(.*?)"', PAGE)
    installed = tmp_path / "mine-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(f"[{entry[1]}]\n{entry[2]} = {entry[3]}\n")
    return tmp_path


def run_pytest(author, *arguments, **extra):
    words = "-m", "pytest", "-p", "no:cacheprovider", "-rs", *arguments
    (author / "pytest.ini").touch()  # otherwise pytest would read a configuration in a folder above
    env = {**os.environ, "PYTHONPATH": str(author), **extra}
    return python(*words, code=None, cwd=author, env=env)


@pytest.mark.slow
def test_the_page_runs_and_skips_what_it_cannot_do_with_the_reason(author):
    """The suite of the page passes; a suite that declares missing features skips their cases."""
    page = author / "test_conformance.py"
    declared = '{"njit": "it is written in Python", "regions": "not yet"}'
    less = page.read_text().replace("cannot = {}", f"cannot = {declared}")
    (author / "test_less.py").write_text(less)
    both = "(TestBarrier and three) or (TestRegions and test_block_bounds)"
    one = "(TestAllreduce and test_sum and mine-2) or TestIdentity"
    chosen = f"{both} or (test_conformance and ({one}))"
    done = run_pytest(author, "-k", chosen, "--strict-markers", "-W", "error")
    assert done.returncode == 0, done.stdout
    assert "27 passed, 12 skipped" in done.stdout, done.stdout
    assert "njit: it is written in Python" in done.stdout
    assert "regions: not yet" in done.stdout


def test_without_the_plugin_it_says_what_to_do(author):
    done = run_pytest(author, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert done.returncode != 0
    assert "-p cobre_comm.testing.plugin" in done.stdout + done.stderr


def test_the_table_needs_no_pytest():
    assert "pip install 'cobre-comm[conformance]'" in python("-c", WITHOUT_PYTEST).stdout


def test_the_whole_suite_has_every_case():
    Whole = type("TestWhole", (ConformanceSuite,), {"grid": OUR_GRID})  # noqa: N806
    parts = [value for value in vars(Whole).values() if isinstance(value, type)]
    assert [part.__bases__ for part in parts] == [(part,) for part in PARTS.values()]
    assert all(part.grid is OUR_GRID for part in parts)
    for name, rows in cases.table().items():
        [part] = [each for each in parts if each.cases is rows]
        assert part.__name__.lower() == "test" + name.replace("_", "")
        assert all(hasattr(part, f"test_{case.name}") for case in rows)


COLLECTIVES = ("Allgatherv", "Allreduce", "Barrier", "Broadcast", "ExactSum", "Gatherv")


@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_quick_run_has_each_collective_on_every_backend_and_from_both_callers(name):
    marked = marked_trials(OUR_GRID, PARTS[f"{name}Tests"].cases)
    quick = [each.values[0] for each in marked if "quick" in {mark.name for mark in each.marks}]
    assert {trial.backend for trial in quick} == {backend for backend, _ in OUR_GRID.quick_points}
    assert {trial.cell.caller for trial in quick} >= {"python", "njit"}


@pytest.mark.parametrize(
    ("expression", "selects"),
    [
        ("quick", lambda marks: "quick" in marks),
        ("not slow", lambda marks: "slow" not in marks),
        ("not slowest", lambda marks: "slowest" not in marks),
    ],
)
def test_what_is_collected_for_a_shorter_run_is_what_it_needs(expression, selects):
    def selected(marked):
        """Return the trials that this run selects."""
        return {
            (each.values[0].case.name, each.id)
            for each in marked
            if selects({mark.name for mark in each.marks})
        }

    cases = PARTS["AllreduceTests"].cases
    few, every = (marked_trials(OUR_GRID, cases, run) for run in (RUNS[expression], TRIPLES))
    assert len(few) < len(every)
    assert selected(few) == selected(every) != set()


def test_a_usual_run_has_every_value_of_each_case_and_pairs_of_case_caller_and_way():
    cases = PARTS["GathervTests"].cases
    usual = [each.values[0] for each in marked_trials(OUR_GRID, cases, RUNS["not slow"])]
    short = [t for case in cases for t in OUR_GRID.trials(case) if not t.is_slow]

    def held(trials):
        """Return each pair of values that some trial has, and each value of each case."""
        pairs = [*itertools.combinations(("case", "caller", "way"), 2)]
        found = {(a, b, t.factors[a], t.factors[b]) for t in trials for a, b in pairs}
        return found | {(t.case.name, *each) for t in trials for each in t.cell.factors.items()}

    assert held(short) == held(usual)
    assert {t.factors["ranks"] for t in short} == {t.factors["ranks"] for t in usual}


def test_chosen_rows_hold_every_pair():
    values = {"backend": "abc", "caller": "xy", "dtype": "12345", "op": "+-*"}
    rows = [dict(zip(values, row, strict=True)) for row in itertools.product(*values.values())]
    for strength, most in ((1, 5), (2, 22), (4, 90)):
        chosen = [rows[number] for number in choose(rows, strength)]
        parts = [set(itertools.combinations(row.items(), strength)) for row in rows]
        held = [set(itertools.combinations(row.items(), strength)) for row in chosen]
        assert set().union(*held) == set().union(*parts)
        assert len(chosen) <= most
    assert {7, 8} < choose(rows, 2, given=[7, 8])


def test_a_part_can_be_left_out_or_replaced():
    class OwnBarrier(PARTS["BarrierTests"]):
        grid = Grid.of("mine")

    class Whole(ConformanceSuite):
        grid = Grid.of("mine")
        TestSignals = None
        TestBarrier = OwnBarrier

    assert Whole.TestSignals is None
    assert Whole.TestBarrier is OwnBarrier
    assert issubclass(Whole.TestAllreduce, PARTS["AllreduceTests"])


def test_a_feature_that_there_is_not_is_an_error():
    with pytest.raises(ValueError, match=f"choose from {', '.join(FEATURES)}"):
        type("Whole", (ConformanceSuite,), {"grid": OUR_GRID, "cannot": {"region": "typo"}})


def test_a_grid_is_needed():
    with pytest.raises(TypeError, match="Whole has no grid"):
        type("Whole", (ConformanceSuite,), {})
