"""What ranks on several nodes do at awkward moments."""

import contextlib
import time

import numpy as np
from cobre_kernels.mpi import messages

from cobre_comm import CollectiveFailed, MpiBackend

CONTROL_TAG = 2


def close_with_an_unread_query(comm):
    """A leader has sent a liveness query; no next communicator receives it."""
    from cobre_comm.backends.mpi import owned

    left = []
    free = owned.OwnedObjects.free

    def looking(self):
        time.sleep(0.2)
        left.append(self.world.Iprobe(tag=CONTROL_TAG))
        free(self)

    owned.OwnedObjects.free = looking
    with MpiBackend() as first:
        if first.rank == first.size - 1:
            time.sleep(1.2)  # the others are overdue after 1 s, and wait for answers until 1.5
        first.barrier()
    for _ in range(3):
        with MpiBackend() as later:
            later.barrier()
    return left


def close_without_goodbye(comm):
    """Rank 0 waits in vain for a goodbye; a later collective moment finds it."""
    from mpi4py import MPI

    from cobre_comm.backends.mpi import owned

    owned.GOODBYE_S = 0.3
    first = MpiBackend()
    first.barrier()
    is_last = first.rank == first.size - 1
    if is_last:
        first._memory._goodbye = None
    first.close()
    world, kept = first._owned.world, []
    for number in range(2):
        with MpiBackend() as later:
            later.barrier()
        kept.append(first._owned in owned._owned)
        if is_last and number == 0:
            goodbye = np.zeros(3 + world.size, dtype=np.int64)
            goodbye[:2] = messages.REPORT, world.rank
            world.Send([goodbye, MPI.BYTE], dest=0, tag=CONTROL_TAG)
    return kept


def make_another_after_a_failure(comm):
    """A broken communicator stays until MPI ends, and no later one waits for its goodbyes."""
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
    return first._owned.is_closed, first._owned in owned._owned
