"""The whole SDDP example: no backend and no number of ranks, nodes or threads changes a bit."""

import itertools

import pytest

from cobre_comm.check.sddp import differences, example_folder, train
from cobre_comm.testing.suite.grid import way_of
from tests.grid import LAYOUTS, pairs, skip_unless_here

BACKENDS = ("shm", "tcp", "mpi-openmpi", "mpi-mpich")
RUNS = [
    *itertools.product(BACKENDS, (2, 4)),
    ("shm", 1),
    ("mpi-mpich:0,1,2", 3),
    *((f"{name}:{layout}", size) for name in BACKENDS[1:] for layout, size in LAYOUTS),
]
ALL = ()
# With five forward passes, blocks are unequal, and of seven ranks some are idle.
FEW = ("--iterations", "5", "--forward-passes", "5")
SELECT = ("--iterations", "20", "--forward-passes", "5", "--select-cuts")
# So many iterations are enough here; by default this case is trained until it is settled.
MOST = {"gen_h8_t12_k10": ("--iterations", "40")}
SMALL = "gen_h4_t5_k3"
CASES = [path.stem for path in sorted(example_folder().glob("cases/*.json"))]
QUICK = ("shm", 2, SMALL, FEW)
# Three ranks, because with fewer ranks every order of a sum has the same result. Over tcp, one of
# the two leaders has a follower.
EVERY_DAY = [
    ("shm", 3, SMALL, ALL),
    ("tcp:0,0,1", 3, SMALL, FEW),
    ("mpi-mpich:0,1,2", 3, SMALL, FEW),
]
# Each case is trained with each number of ranks and over each transport, and each backend and
# layout occurs once.
CHOSEN = pairs(
    [
        {"way": way_of(backend), "ranks": ranks, "case": case, "backend": backend}
        for backend, ranks in RUNS
        for case in CASES
    ],
    alone=["backend"],
)
FULL = [
    *((run["backend"], run["ranks"], run["case"], MOST.get(run["case"], ALL)) for run in CHOSEN),
    *((backend, ranks, SMALL, FEW) for backend in BACKENDS for ranks in (3, 7)),
    *(("shm", 4, SMALL, ALL), ("tcp:0,0,1,1", 4, SMALL, FEW)),
    *((backend, ranks, SMALL, SELECT) for backend, ranks in [("shm", 3), *RUNS]),
]
# The example starts no threads of its own; these variables limit those of NumPy and numba.
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def marked(run):
    return pytest.param(
        *run,
        marks=[pytest.mark.quick] * (run == QUICK)
        + [pytest.mark.slow] * (run not in (QUICK, *EVERY_DAY)),
    )


@pytest.fixture(scope="module")
def alone():
    """Return a function that trains a case on one rank, and keeps the results for later calls."""
    made = {}

    def result(case, options=ALL):
        if (case, options) not in made:
            made[case, options] = train("local", 1, case, options)
        return made[case, options]

    return result


@pytest.mark.parametrize(
    ("backend", "ranks", "case", "options"),
    [marked(run) for run in dict.fromkeys([QUICK, *EVERY_DAY, *FULL])],
)
def test_same_bits(backend, ranks, case, options, alone):
    skip_unless_here(backend)
    assert differences(alone(case, options), train(backend, ranks, case, options)) == []


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_two_threads_change_nothing(backend, alone):
    skip_unless_here(backend)
    result = train(backend, 2, SMALL, env=dict.fromkeys(THREADS, "2"))
    assert differences(alone(SMALL), result) == []


def test_a_difference_would_be_seen(alone):
    assert {"lower_bound", "cuts_sha256", "iterations"} <= set(
        differences(alone(SMALL), alone(SMALL, FEW))
    )
