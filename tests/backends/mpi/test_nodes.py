"""Several nodes at awkward moments; all these nodes are on one machine."""

import contextlib
import os
import subprocess
import time
from functools import partial

import numpy as np
import pytest
from cobre_kernels.nodes.messages import REPORT

from cobre_comm import CollectiveFailed, MpiBackend
from tests.grid import EVERY_RANK_ALONE

pytestmark = pytest.mark.slow  # each test starts processes; `make test` runs the suite's cases

ALONE = [f"mpi-openmpi:{EVERY_RANK_ALONE}", f"mpi-mpich:{EVERY_RANK_ALONE}"]
CONTROL_TAG = 2
ranks = partial(pytest.mark.ranks, backends=ALONE)


@ranks(4)
def test_a_rank_that_has_finished_may_leave_while_another_is_stopped(comm):
    """All ranks enter the barrier; rank 2 is stopped while the other ranks finish and close."""
    comm.barrier()
    if comm.rank == 3:
        time.sleep(0.8)
    elif comm.rank == 2:
        pid = os.getpid()
        script = f"sleep 0.4; kill -STOP {pid}; sleep 1.2; kill -CONT {pid}"
        subprocess.Popen(["/bin/sh", "-c", script])
    comm.barrier()
    comm.close()


@ranks(2, connect=False, env={"COBRE_MPI_TIMEOUT_SECS": "1"})
def test_unread_queries_do_not_outlive_their_communicator(comm):
    """A leader has sent a liveness query that nobody reads; no later communicator receives it."""
    from cobre_comm.backends.mpi import owned

    left, free = [], owned.OwnedObjects.free

    def looking(self):
        time.sleep(0.2)
        left.append(self.world.Iprobe(tag=CONTROL_TAG))
        free(self)

    owned.OwnedObjects.free = looking
    with MpiBackend() as first:
        if first.rank == first.size - 1:
            time.sleep(1.2)  # after 1 s the peer asks, and awaits the answer until 1.5 s
        first.barrier()
    for _ in range(3):
        with MpiBackend() as later:
            later.barrier()
    assert left
    assert not any(left)


@ranks(2, connect=False)
def test_the_wait_for_goodbyes_has_a_limit(comm):
    """Rank 0 stops waiting for a goodbye, and frees the communicator when the goodbye arrives."""
    from mpi4py import MPI

    from cobre_comm.backends.mpi import owned

    owned.GOODBYE_S = 0.3
    first = MpiBackend()
    first.barrier()
    is_last = first.rank == first.size - 1
    if is_last:
        first._nodes._goodbye = None
    first.close()
    world = first._owned.world
    for is_kept in (True, False):
        with MpiBackend() as later:
            later.barrier()
        assert (first._owned in owned._owned) == is_kept
        if is_last and is_kept:
            goodbye = np.zeros(3 + world.size, dtype=np.int64)
            goodbye[:2] = REPORT, world.rank
            world.Send([goodbye, MPI.BYTE], dest=0, tag=CONTROL_TAG)


@ranks(2, connect=False)
def test_the_next_communicator_does_not_wait_for_a_broken_one(comm):
    """A broken communicator stays until MPI ends; no later communicator awaits its goodbyes."""
    from cobre_comm.backends.mpi import owned

    owned.GOODBYE_S = 1000.0
    first = MpiBackend()
    with contextlib.suppress(CollectiveFailed):
        if first.rank == 0:
            first.barrier()
        else:
            first.broadcast(np.zeros(1))
    first.close()
    first.close()
    with MpiBackend() as later:
        later.barrier()
    assert not first._owned.is_closed
    assert first._owned in owned._owned
