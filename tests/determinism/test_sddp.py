"""The SDDP example, end to end: backend, ranks, threads and repetition do not change a bit."""

import pytest

from cobre_comm.check.sddp import differences, train
from tests.grid import skip_unless_here, slow

CASE = "gen_h4_t5_k3"
MATRIX = [
    ("local", 1),
    ("shm", 2),
    ("shm", 4),
    ("tcp", 2),
    ("tcp", 4),
    ("mpi-openmpi", 2),
    ("mpi-openmpi", 4),
    ("mpi-mpich", 2),
    ("mpi-mpich", 4),
]
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


def test_a_difference_would_be_seen(first):
    other = train("local", 1, CASE, ["--seed", "1", "--iterations", "5"])
    assert {"lower_bound", "cuts_sha256", "iterations"} <= set(differences(first, other))
