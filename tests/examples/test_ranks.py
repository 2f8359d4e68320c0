"""The same policy for any number of ranks and any backend: every case, to the bit."""

import pytest

from cobre_comm.check.sddp import differences, example_folder, train
from tests.grid import skip_unless_here, slow

CASES = sorted(example_folder().glob("cases/*.json"))
EVERY_DAY = {"cobre_d02_single_hydro", "sddpjl_joint_noise_4"}  # deterministic, and random demand
LONG_RUNS = [
    ("tcp", 2),
    ("shm", 1),
    ("shm", 2),
    ("tcp", 4),
    ("mpi-openmpi", 2),
    ("mpi-openmpi", 4),
    ("mpi-mpich", 2),
    ("mpi-mpich", 4),
]
SMALL = "gen_h4_t5_k3"
FEW = ("--iterations", "5", "--forward-passes", "5")
OPTIONS = {"gen_h8_t12_k10": ("--iterations", "40")}  # a fifth of its default, and enough


def slow_run(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def alone():
    """Return what gives the result of one rank; each is made when first asked for."""
    made = {}

    def result(case, options=()):
        if (case, options) not in made:
            made[case, options] = train("local", 1, case, options)
        return made[case, options]

    return result


@pytest.mark.parametrize(
    "case",
    [case if case.stem in EVERY_DAY else slow(case, case.stem) for case in CASES],
    ids=lambda case: case.stem,
)
@pytest.mark.parametrize(("backend", "ranks"), [("shm", 4), *(slow_run(*run) for run in LONG_RUNS)])
def test_ranks_do_not_change_a_bit(case, backend, ranks, alone):
    skip_unless_here(backend)
    options = OPTIONS.get(case.stem, ())
    assert differences(train(backend, ranks, case, options), alone(case, options)) == []


@pytest.mark.parametrize(
    ("backend", "ranks"), [("mpi-mpich:0,1,2", 3), slow_run("mpi-openmpi:0,1", 4)]
)
def test_several_nodes_do_not_change_a_bit(backend, ranks, alone):
    skip_unless_here(backend)
    assert differences(train(backend, ranks, SMALL), alone(SMALL)) == []


@pytest.mark.parametrize("ranks", [3, slow(7)])
@pytest.mark.parametrize("backend", ["shm", slow("tcp"), slow("mpi-openmpi"), slow("mpi-mpich")])
def test_uneven_blocks_and_idle_ranks(backend, ranks, alone):
    skip_unless_here(backend)
    assert differences(alone(SMALL, FEW), train(backend, ranks, SMALL, FEW)) == []
