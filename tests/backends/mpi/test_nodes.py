"""Several nodes, at awkward moments and lengths; nodes are pretended on one machine."""

import os
import subprocess
import time

import pytest

from tests.backends.mpi import node_bodies as bodies
from tests.grid import EVERY_RANK_ALONE, skip_unless_here, values

pytestmark = pytest.mark.slow  # each makes processes and waits; `make test` has the suite's own

ALONE = [f"mpi-openmpi:{EVERY_RANK_ALONE}", f"mpi-mpich:{EVERY_RANK_ALONE}"]


@pytest.mark.ranks(4, backends=ALONE)
def test_a_rank_that_has_finished_may_leave_while_another_is_stopped(comm):
    """All enter the barrier; rank 2 is set aside while the others finish and close."""
    comm.barrier()
    if comm.rank == 3:
        time.sleep(0.8)
    elif comm.rank == 2:
        pid = os.getpid()
        script = f"sleep 0.4; kill -STOP {pid}; sleep 1.2; kill -CONT {pid}"
        subprocess.Popen(["/bin/sh", "-c", script])
    comm.barrier()
    comm.close()


@pytest.mark.parametrize("backend", ALONE)
def test_unread_queries_do_not_outlive_their_communicator(backend):
    skip_unless_here(backend)
    limit = {"COBRE_MPI_TIMEOUT_SECS": "1"}
    for left in values(backend, 2, bodies.close_with_an_unread_query, env=limit):
        assert left
        assert not any(left)


@pytest.mark.parametrize("backend", ALONE)
def test_the_wait_for_goodbyes_has_a_limit(backend):
    """The communicator is kept meanwhile, and freed when they have come."""
    skip_unless_here(backend)
    assert values(backend, 2, bodies.close_without_goodbye) == [[True, False]] * 2


@pytest.mark.parametrize("backend", ALONE)
def test_the_next_communicator_does_not_wait_for_a_broken_one(backend):
    skip_unless_here(backend)
    assert values(backend, 2, bodies.make_another_after_a_failure) == [(False, True)] * 2
