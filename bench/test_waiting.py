"""What waiting costs: the CPU time of a rank that waits 10 s, and barriers with too few cores.

*A rank waits 10 s* at a barrier for one that sleeps. The figure is the share of a core that its
process uses meanwhile, from Python and from @njit, beside MPI_Barrier in the same processes. Over
mpi the two ranks take themselves to be on two nodes: on one they would wait as they do over shm.

*Barrier, 8 ranks on 2 cores*, beside the context switches that it cannot do without. A bare context
switch is what the kernel takes to change from one process to another of the same core, and is
measured with two processes pinned to a core that hand a word back and forth by futex(2). Between
two barriers each of the R ranks has to run once, so a barrier takes at least R switches, on all
cores together, and 1000 barriers are compared with 1000 * R switches. Side "context switches": they
are spread over the cores, with a pair of processes on each (R / cores after each other); side
"context switches on one core": one pair does all R. ``switch_s`` is one switch by itself.

    python -m pytest bench/test_waiting.py
"""

from __future__ import annotations

import statistics

import pytest
from measurements import LIBRARY_NAMES
from mpi_start import LIBRARIES
from recording import ratios
from script_jobs import OURS, PEER, ScriptFigure, ScriptJobs, parametrize, told

LATE_S = 10.0
CROWD = 8
SWITCHES = "context switches"
DOORS = {"python": "from Python", "njit": "in @njit", PEER: "by MPI_Barrier"}
# Our backend, and what COBRE_MPI_PRETEND_NODES is.
BACKENDS = {"shm": None, "tcp": None, "mpi": "0,1"}

LATE_LABELS = {
    f"a rank waits {LATE_S:g} s over {backend}, {DOORS[door]}": (backend, door)
    for backend in BACKENDS
    for door in ("python", "njit")
}
CROWD_LABELS = {
    f"barrier on 2 cores, {DOORS['python']}": "python",
    f"barrier on 2 cores, {DOORS['njit']}": "njit",
}


def late_figures(full: bool) -> list[ScriptFigure]:
    return [
        ScriptFigure(label, side, 2, library, BACKENDS[backend])
        for library in (LIBRARIES if full else LIBRARIES[:1])
        for label, (backend, _) in LATE_LABELS.items()
        if full or backend == "shm"
        for side in (OURS, PEER)
    ]


def crowd_figures(full: bool) -> list[ScriptFigure]:
    sides = {"python": [OURS, PEER, SWITCHES, f"{SWITCHES} on one core"], "njit": [OURS]}
    return [
        ScriptFigure(label, side, CROWD, library)
        for library in (LIBRARIES if full else LIBRARIES[:1])
        for label, door in CROWD_LABELS.items()
        for side in sides[door]
    ]


def pytest_generate_tests(metafunc) -> None:
    full = metafunc.config.getoption("full")
    made = late_figures if metafunc.function is test_rank_that_waits else crowd_figures
    parametrize(metafunc, made(full))


@pytest.fixture(scope="module")
def late_jobs(request) -> dict[str, ScriptJobs]:
    """One job for each backend: what one of them leaves behind must not be another's CPU time."""

    def words_of(backend: str):
        def words(figures: list[ScriptFigure]) -> list:
            asked = [LATE_LABELS[figure.label] for figure in figures if figure.label in LATE_LABELS]
            doors = dict.fromkeys(door for other, door in asked if other == backend)
            return ["--ours", backend, "--late", LATE_S, "--doors", *doors, PEER]

        return words

    return {b: ScriptJobs(request, "waiting_rank.py", words_of(b)) for b in BACKENDS}


@pytest.fixture(scope="module")
def crowd_jobs(request) -> ScriptJobs:
    return ScriptJobs(request, "switches_rank.py", lambda figures: [])


def test_rank_that_waits(
    record, late_jobs: dict[str, ScriptJobs], script_figure: ScriptFigure
) -> None:
    backend, door = LATE_LABELS[script_figure.label]
    result = late_jobs[backend].result(script_figure)
    waits = result["waits"]
    share = {name: used_s / waited_s for name, (waited_s, used_s) in waits.items()}
    ours = script_figure.side == OURS
    extra = {}
    if ours:
        peer = LIBRARY_NAMES[script_figure.library]
        extra = {"ratio_to": {peer: ratios([share[door]], [share[PEER]])}}
    mine = door if ours else PEER
    record(
        [waits[mine][0]],
        **(told(script_figure, result) | {"backend": backend if ours else None}),
        operation="wait",
        value=share[mine],
        unit="cores",
        cpu_s=waits[mine][1],
        **extra,
    )


def test_barrier_on_two_cores(record, crowd_jobs: ScriptJobs, script_figure: ScriptFigure) -> None:
    result = crowd_jobs.result(script_figure)
    samples = result["samples"]
    door = CROWD_LABELS[script_figure.label]
    one_core = f"{SWITCHES} on one core"
    extra = {}
    if script_figure.side == OURS:
        peer = LIBRARY_NAMES[script_figure.library]
        others = {SWITCHES: SWITCHES, one_core: one_core, peer: PEER}
        extra = {
            "ratio_to": {n: ratios(samples[door], samples[side]) for n, side in others.items()}
        }
    record(
        samples[door if script_figure.side == OURS else script_figure.side],
        **told(script_figure, result),
        operation="barrier of a crowd",
        switch_s=statistics.median(samples[one_core]) / CROWD,
        switches_per_call=CROWD,
        **extra,
    )
