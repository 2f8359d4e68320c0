"""Several nodes, at awkward moments and lengths; nodes are pretended on one machine."""

import psutil
import pytest

from cobre_comm.testing import run_ranks, run_ranks_outcomes
from cobre_comm.testing.ranks.outcome import values_of
from tests.backends.mpi import node_bodies as bodies
from tests.grid import EVERY_RANK_ALONE, skip_unless_here

pytestmark = pytest.mark.slow  # each makes processes and waits; `make test` has the suite's own

ALONE = [f"mpi-openmpi:{EVERY_RANK_ALONE}", f"mpi-mpich:{EVERY_RANK_ALONE}"]
TINY = {"COBRE_MPI_BUFFER_BYTES": "4096"}
LENGTHS = [0, 1, 31, 32, 33, 40, 4095, 16384, 16385, 100_003]
LARGE_GIB = 14  # two ranks of 3 GiB each, and what MPI takes for its messages


@pytest.mark.parametrize("backend", ALONE)
def test_a_rank_that_has_finished_may_leave_while_another_is_stopped(backend):
    skip_unless_here(backend)
    run_ranks(backend, 4, bodies.leave_while_one_sleeps, 2, 3)


@pytest.mark.parametrize("backend", ALONE)
def test_unread_queries_do_not_outlive_their_communicator(backend):
    skip_unless_here(backend)
    outcomes = run_ranks_outcomes(
        backend, 2, bodies.close_with_an_unread_query,
        connect=False, env={"COBRE_MPI_TIMEOUT_SECS": "1"},
    )  # fmt: skip
    for left in values_of(outcomes):
        assert left
        assert not any(left)


@pytest.mark.parametrize("backend", ALONE)
def test_the_wait_for_goodbyes_has_a_limit(backend):
    """The communicator is kept meanwhile, and freed when they have come."""
    skip_unless_here(backend)
    outcomes = run_ranks_outcomes(backend, 2, bodies.close_without_goodbye, connect=False)
    assert values_of(outcomes) == [[True, False]] * 2


@pytest.mark.parametrize(
    ("backend", "size"),
    [
        (ALONE[0], 3),
        ("mpi-mpich:0,1", 4),
        (ALONE[1], 4),
        ("mpi-openmpi:2,1,0,0,1", 7),
        ("mpi-mpich:0,0,1", 7),
    ],
)
@pytest.mark.parametrize("env", [{}, TINY], ids=["default", "tiny"])
def test_every_route(backend, size, env):
    skip_unless_here(backend)
    run_ranks(backend, size, bodies.odd_sizes, LENGTHS, env=env)


@pytest.mark.parametrize("backend", [*ALONE, "mpi-openmpi"])
def test_beyond_31_bits(backend):
    skip_unless_here(backend)
    available_gib = psutil.virtual_memory().available / 2**30
    if available_gib < LARGE_GIB:
        pytest.skip(f"needs {LARGE_GIB} GiB, there are {available_gib:.0f}")
    run_ranks(backend, 2, bodies.beyond_31_bits, timeout_s=200)
