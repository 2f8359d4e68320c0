"""The SDDP example, end to end: backend, ranks, threads and repetition do not change a bit."""

import itertools

import pytest

from cobre_comm.check.sddp import differences, train
from tests.grid import skip_unless_here, slow, some

CASE = "gen_h4_t5_k3"
MATRIX = some(
    [("tcp", 2), ("mpi-openmpi", 2), ("mpi-mpich", 4)],
    [("local", 1), *itertools.product(["shm", "tcp", "mpi-openmpi", "mpi-mpich"], [2, 4])],
)
# The example starts no threads of its own; what NumPy and numba might use is bounded by these, so
# that they change nothing is for the long grids.
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@pytest.fixture(scope="module")
def first():
    """Return what one rank computes."""
    return train("local", 1, CASE)


@pytest.mark.parametrize("threads", [1, slow(2)])
@pytest.mark.parametrize("times", [1, slow(2)])
@pytest.mark.parametrize(("backend", "ranks"), MATRIX)
def test_same_bits(backend, ranks, times, threads, first):
    skip_unless_here(backend)
    for _ in range(times):
        result = train(backend, ranks, CASE, env=dict.fromkeys(THREADS, str(threads)))
        assert differences(first, result) == []


@pytest.mark.quick
def test_four_ranks_as_one(first):
    """The launcher and the example, for `make quick`."""
    assert differences(first, train("shm", 4, CASE)) == []


def test_a_difference_would_be_seen(first):
    other = train("local", 1, CASE, ["--seed", "1", "--iterations", "5"])
    assert {"lower_bound", "cuts_sha256", "iterations"} <= set(differences(first, other))
