"""The same policy for any number of ranks and any backend: every case, to the bit."""

import json

import pytest

from cobre_comm.check.sddp import differences, example_folder, train
from tests.grid import skip_unless_here, slow

CASES = sorted(example_folder().glob("cases/*.json"))
# gen_h8 has no optimum that was proved; this much of its bound must be reached.
FLOORS = {"gen_h8_t12_k10": 182400.0}
EVERY_DAY = {"gen_h4_t5_k3", "cobre_d02_single_hydro", "sddpjl_joint_noise_4"}  # one of each kind
RUNS = [("shm", 4)]
SLOW_RUNS = [
    ("tcp", 2),
    ("shm", 1),
    ("shm", 2),
    ("tcp", 4),
    ("mpi-openmpi", 2),
    ("mpi-openmpi", 4),
    ("mpi-mpich", 2),
    ("mpi-mpich", 4),
]
# Over mpi, one case on several nodes is for every day; on one: tests/determinism/test_sddp.py.
SMALL = "gen_h4_t5_k3"
MPI_RUNS = [("mpi-openmpi:0,1", 4), ("mpi-mpich:0,1,2", 3)]
FEW = ("--iterations", "5", "--forward-passes", "5")
OPTIONS = {"gen_h8_t12_k10": ("--iterations", "40")}  # a fifth of its default, and enough


def slow_pair(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


def options_of(case):
    return OPTIONS.get(case.stem, ())


@pytest.fixture(scope="module")
def alone():
    """Results of one rank, by case, made when first asked for."""
    made = {}

    def result(case):
        if case not in made:
            made[case] = train("local", 1, case, options_of(case))
        return made[case]

    return result


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_the_bound_reaches_the_optimum(case, alone):
    bound = float.fromhex(alone(case)["lower_bound"][-1])
    optimum = json.loads(case.read_text())["verified"]["value"]
    if case.stem in FLOORS:
        assert FLOORS[case.stem] <= bound
    else:
        assert bound == pytest.approx(optimum, rel=1e-6)
        assert bound <= optimum * (1 + 1e-9)


@pytest.mark.parametrize(
    "case",
    [case if case.stem in EVERY_DAY else slow(case, case.stem) for case in CASES],
    ids=lambda case: case.stem,
)
@pytest.mark.parametrize(("backend", "ranks"), [*RUNS, *(slow_pair(*run) for run in SLOW_RUNS)])
def test_ranks_do_not_change_a_bit(case, backend, ranks, alone):
    skip_unless_here(backend)
    result = train(backend, ranks, case, options_of(case))
    assert differences(result, alone(case)) == []


@pytest.mark.parametrize(("backend", "ranks"), MPI_RUNS)
def test_several_nodes_do_not_change_a_bit(backend, ranks, alone):
    skip_unless_here(backend)
    one = alone(next(case for case in CASES if case.stem == SMALL))
    assert differences(train(backend, ranks, SMALL), one) == []


@pytest.fixture(scope="module")
def few():
    """Result of one rank with few trajectories."""
    return train("local", 1, SMALL, FEW)


@pytest.mark.parametrize("ranks", [3, slow(7)])
def test_uneven_blocks_and_idle_ranks(backend, ranks, few):
    assert differences(few, train(backend, ranks, SMALL, FEW)) == []
