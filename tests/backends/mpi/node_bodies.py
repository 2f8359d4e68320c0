"""What ranks on several nodes do at awkward moments."""

import os
import subprocess
import time

import numpy as np
from cobre_kernels.mpi import messages

from cobre_comm import MpiBackend, ReduceOp
from cobre_comm.testing.cases.reference import assert_same_fold, fold, numbers

CONTROL_TAG = 2


def leave_while_one_sleeps(comm, stopped, last):
    """All enter the barrier; one of them is set aside while the others finish and close."""
    comm.barrier()
    if comm.rank == last:
        time.sleep(0.8)
    elif comm.rank == stopped:
        pid = os.getpid()
        script = f"sleep 0.4; kill -STOP {pid}; sleep 1.2; kill -CONT {pid}"
        subprocess.Popen(["/bin/sh", "-c", script])
    comm.barrier()
    comm.close()


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
        first._memory._say_goodbye = lambda address: None
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


def odd_sizes(comm, lengths):
    """Every route of every collective, around the lengths at which it changes."""
    rank, size = comm.rank, comm.size
    for length in lengths:
        for root in {0, size - 1}:
            buffer = np.arange(length, dtype=np.uint8) + np.uint8(rank)
            comm.broadcast(buffer, root)
            assert (buffer == np.arange(length, dtype=np.uint8) + np.uint8(root)).all()
        counts = [length if r % 2 == 0 else length // 3 for r in range(size)]
        displs = [sum(counts[r + 1 :]) for r in range(size)]  # backwards
        everything = np.zeros(sum(counts), dtype=np.uint8)
        send = (np.arange(counts[rank]) * (rank + 1)).astype(np.uint8)
        comm.allgatherv(send, everything, counts, displs)
        for r in range(size):
            block = everything[displs[r] : displs[r] + counts[r]]
            assert (block == (np.arange(counts[r]) * (r + 1)).astype(np.uint8)).all()
        if length >= 8:
            _fold(comm, length // 8)


def _fold(comm, length):
    contributions = [numbers("f8", rank, length) for rank in range(comm.size)]
    result = np.empty(length)
    comm.allreduce(contributions[comm.rank], result, ReduceOp.SUM)
    assert_same_fold(result, fold(ReduceOp.SUM, contributions), ReduceOp.SUM)


def beyond_31_bits(comm):
    """Counts and displacements in bytes that a C int cannot hold."""
    size, rank = comm.size, comm.rank
    counts = [2**30 + 5 + r for r in range(size)]
    displs = [sum(counts[:r]) for r in range(size)]
    send = np.zeros(counts[rank], dtype=np.int8)
    send[:: 2**20] = rank + 3
    send[-1] = 77 + rank
    everything = np.zeros(sum(counts) + 1, dtype=np.int8)
    comm.allgatherv(send, everything, counts, displs)
    for r in range(size):
        block = everything[displs[r] : displs[r] + counts[r]]
        assert (block[:: 2**20] == r + 3).all()
        assert block[-1] == 77 + r
        assert np.count_nonzero(block) == 1025 + (1 if (counts[r] - 1) % 2**20 else 0)
    assert everything[-1] == 0
    buffer = everything
    buffer[:] = 0
    if rank == 1:
        buffer[:: 2**20] = 9
        buffer[-1] = 4
    comm.broadcast(buffer, 1)
    assert (buffer[: -1 : 2**20] == 9).all()
    assert buffer[-1] == 4
    assert np.count_nonzero(buffer) == len(range(0, len(buffer), 2**20)) + 1
