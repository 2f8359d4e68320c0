"""Classes of tests, one for each file of the table, with a test method for each case."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from cobre_comm.testing.backend_name import BackendName
from cobre_comm.testing.cases.case import Case, perform
from cobre_comm.testing.pairwise import choose
from cobre_comm.testing.suite.grid import PAIRED, POINT, TRANSPORT, Grid, Trial

PLUGIN = "cobre_comm.testing.plugin"
QUICK, USUAL, PAIRS, TRIPLES = range(4)  # runs; each has all tests of the run before it
# The run for each value of pytest's option `-m`. Only the tests of this run are collected, because
# it takes seconds to collect those of a longer run.
RUNS = {"quick": QUICK, "not slow": USUAL, "not slowest": PAIRS, "slow and not slowest": PAIRS}
USUAL_S = 60.0  # a case that may take longer has to say so
LONG_S = 600.0  # a case that may take longer is one of the slowest
# Features that a backend may lack. Every communicator has all other features.
FEATURES = {
    "njit": "be an argument of compiled code",
    "regions": "make shared regions",
    "work": "share work out (`create_work`)",
    "phases": "attribute time to phases (`phase`, `enter_phase`)",
    "split": "split and split_local",
    "shrink": "go on without a rank that is lost (`shrink`)",
    "topology": "tell which ranks are where (`topology`)",
    "liveness": "see by itself that the process of a rank has ended",
    "lines": "tell in the log of a rank that is late, but alive",
    "timeouts": "give up waiting for a live rank after a limit",
    "disagreement": "see that ranks call different things",
    "signals": "end a wait for a signal, as Ctrl-C is",
    "threads": "refuse a second thread",
    "stop": "take signals that ask to stop (`graceful`, `stop_requested`)",
    "forks": "refuse to work in a forked child",
}


class Part:
    """Base of the classes of tests, which try each case at the points of their grid.

    Attributes
    ----------
    grid : Grid
        Set by the class that pytest collects.
    cannot : mapping
        The features of :data:`FEATURES` that the backend lacks, each with the reason. Tests of
        these features are skipped, and show the reason.
    cases : sequence of Case
        The rows of the table that the class tries.
    """

    grid: ClassVar[Grid]
    cannot: ClassVar[Mapping[str, str]] = {}
    cases: ClassVar[Sequence[Case]] = ()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if unknown := set(cls.cannot) - set(FEATURES):
            raise ValueError(
                f"{cls.__name__}.cannot: {unknown} unknown; choose from {', '.join(FEATURES)}"
            )

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give the test of a case its trials; give any other test backends and callers."""
        if not metafunc.config.pluginmanager.has_plugin(PLUGIN):
            raise pytest.UsageError(
                f"the conformance suite needs its plugin, which is not loaded: pytest -p {PLUGIN}"
            )
        if not hasattr(self, "grid"):
            raise pytest.UsageError(f'{type(self).__name__} has no grid: grid = Grid.of("mine")')
        if case := getattr(metafunc.function, "case", None):
            run = RUNS.get(metafunc.config.option.markexpr, TRIPLES)
            marked = marked_trials(self.grid, self.cases, run)
            metafunc.parametrize("trial", [each for each in marked if each.values[0].case is case])

    @pytest.fixture(autouse=True)
    def only_what_it_can(self, request: pytest.FixtureRequest) -> None:
        """Skip a test of a feature that the backend declares it lacks."""
        cannot = dict(self.cannot)
        if "njit" not in self.grid.callers:
            cannot.setdefault("njit", f"the callers of the grid are {self.grid.callers}")
        trial = getattr(request.node, "callspec", None) and request.node.callspec.params.get(
            "trial"
        )
        if not trial:
            return
        needed = {*trial.case.needs}
        if trial.cell.caller not in ("", "python"):
            needed.add("njit")
        for feature in sorted(needed & set(cannot)):
            pytest.skip(f"{feature}: {cannot[feature]}")


_marked: dict[Any, list[Any]] = {}


def marked_trials(grid: Grid, cases: Sequence[Case], run: int = TRIPLES) -> list[Any]:
    """Return trials of some cases as parameters, with the marks quick, slow and slowest.

    A quick run has every value. A usual run, which leaves out what is slow, has every value of
    every case, and every pair of a case, a caller and a way in which ranks communicate. A run
    without the slowest tests has every pair of values, and also each way on many ranks, unless an
    MPI starts them. A run with the slowest tests has every triple. Only the trials of ``run`` are
    returned.

    Each case is tried in every way, but not with every MPI and every placement of ranks. Only the
    run with every triple tries each case between nodes with both Open MPI and MPICH.
    """
    key = id(grid), id(cases), run
    if key not in _marked:
        trials = [trial for case in cases for trial in grid.trials(case)]
        rows = [trial.factors for trial in trials]
        quick = [n for n, trial in enumerate(trials) if grid.is_quick(trial)]
        short = [n for n, trial in enumerate(trials) if not trial.is_slow]
        chosen = [_choose(quick, rows, 1, [POINT])]
        if run >= USUAL:
            own = [trial.own_factors for trial in trials]
            alone = {name for row in own for name in row if name not in PAIRED}
            near = [n for n in short if n in chosen[0] or rows[n][POINT] in grid.usual_points]
            compiled = {n for n in short if trials[n].cell.caller not in ("", "python")}
            preferred = _choose(near, own, 2, alone, chosen[0], compiled)
            chosen.append(_choose(short, own, 2, alone, preferred, compiled))
        if run >= PAIRS:
            pairs = _choose(short, rows, 2, [POINT, TRANSPORT], chosen[-1])
            # Trials on many ranks are slow. Without an MPI they are fast enough to try each way.
            light = [n for n, t in enumerate(trials) if not BackendName.parse(t.backend).is_mpi]
            where = [{name: row[name] for name in ("way", "ranks")} for row in rows]
            chosen.append(_choose(sorted({*light, *pairs}), where, 2, (), pairs))
        if run >= TRIPLES:
            chosen.append(_choose(range(len(trials)), rows, 3, [POINT], chosen[-1]))
        # pytest wants a trial for each test, so a case of which no trial is chosen keeps its last
        # trial, which is marked as slowest.
        named = {trials[n].case.name for n in chosen[-1]}
        left = {each.case.name: n for n, each in enumerate(trials) if each.case.name not in named}
        _marked[key] = [
            pytest.param(trials[n], id=trials[n].name, marks=list(_marks(trials[n], n, chosen)))
            for n in sorted({*chosen[-1], *left.values()})
        ]
    return _marked[key]


def _choose(
    numbers: Sequence[int],
    rows: Sequence[Mapping[str, str]],
    strength: int,
    alone: Collection[str],
    given: Iterable[int] = (),
    last: Collection[int] = (),
) -> set[int]:
    """Return few of these numbers, so that their rows have each combination that some row has."""
    before = {numbers.index(number) for number in given}
    behind = {n for n, number in enumerate(numbers) if number in last}
    found = choose([rows[number] for number in numbers], strength, before, alone, behind)
    return {numbers[n] for n in found}


def _marks(trial: Trial, number: int, chosen: Sequence[set[int]]) -> Iterable[pytest.MarkDecorator]:
    first = next((run for run, numbers in enumerate(chosen) if number in numbers), TRIPLES)
    if first == QUICK:
        yield pytest.mark.quick
    if first > USUAL:
        yield pytest.mark.slow
    if first > PAIRS or trial.case.timeout_s > LONG_S:
        yield pytest.mark.slowest
    if trial.case.timeout_s > USUAL_S:
        yield pytest.mark.timeout(trial.case.timeout_s + USUAL_S)


def part(name: str, cases: Sequence[Case]) -> type[Part]:
    """Return the class of tests of some cases."""
    tests = {f"test_{case.name}": _test_of(case) for case in cases}
    fields = {"cases": cases, "__module__": __name__, "__doc__": f"{name}, from the table."}
    return type(name, (Part,), {**fields, **tests})


def _test_of(case: Case) -> Any:
    def test(self: Part, pools: Any, trial: Trial) -> None:
        perform(case, pools.get(trial.backend, trial.size), trial.cell, self.grid)

    test.case = case  # type: ignore[attr-defined]
    return test
