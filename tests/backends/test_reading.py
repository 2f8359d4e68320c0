"""Ranks read a large private array in the memory of the root, where the system permits it."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from cobre_kernels.shm.reading import READ_BYTES

from cobre_comm import CollectiveFailed

LENGTH = 4 * READ_BYTES + 4099  # no multiple of a word
READ_STEPS = 2  # a broadcast through slots takes more steps, even if each step moves 4 MiB


def values(root, number):
    return np.resize(((np.arange(251) * 7 + root * 31 + number) % 251).astype(np.uint8), LENGTH)


def broadcast_from(comm, root, number, buf=None):
    """Broadcast, check every byte, and return how many steps the broadcast took."""
    buf = np.zeros(LENGTH, np.uint8) if buf is None else buf
    buf[:] = values(root, number) if comm.rank == root else 0
    before = comm._comm.node.generation
    comm.broadcast(buf, root)
    steps = comm._comm.node.generation - before
    np.testing.assert_array_equal(buf, values(root, number))
    return steps


def is_refused(comm):
    return bool(comm._comm.node.reading.is_refused)


@pytest.mark.ranks(3, backends=["shm", "tcp"])
def test_every_rank_reads_the_roots_array(comm):
    steps = [broadcast_from(comm, number % comm.size, number) for number in range(6)]
    if is_refused(comm):
        pytest.skip("the system does not permit it")
    assert steps == [READ_STEPS] * 6


@pytest.mark.parametrize("another", ["no process", "the parent", "a reader"])
@pytest.mark.ranks(3, backends=["shm"])
def test_ranks_that_cannot_read_begin_anew_and_do_not_try_again(comm, another):
    """A process id of another PID namespace names no process in this one, or a wrong process."""
    pids = np.empty(comm.size, np.int64)
    comm.allgather(np.array([os.getpid()]), pids)
    if comm.rank == 1:
        shown = {"no process": 2**31 - 1, "the parent": os.getppid(), "a reader": int(pids[2])}
        comm._comm.node.reading.pid = shown[another]
    first = broadcast_from(comm, 1, 0)
    assert is_refused(comm)
    second = broadcast_from(comm, 1, 1)
    assert first == second + 2
    assert second > READ_STEPS
    assert broadcast_from(comm, 0, 2) == second


@pytest.mark.ranks(3, backends=["shm"])
def test_a_rank_whose_buffer_is_in_a_region(comm):
    with comm.create_shared_region(LENGTH * comm.size, np.uint8) as region:
        own = region.block(comm.rank * LENGTH, (comm.rank + 1) * LENGTH)
        for number in range(3):
            in_region = comm.rank == number
            broadcast_from(comm, 0, number, own if in_region else None)
        region.fence()
    broadcast_from(comm, 2, 9)
    assert not is_refused(comm) or broadcast_from(comm, 0, 10) > READ_STEPS


@pytest.mark.ranks(3, backends=["shm"], killed=1)
def test_a_root_that_dies_before_it_is_read_is_named(comm):
    buf = np.zeros(LENGTH, np.uint8)
    comm.barrier()
    if comm.rank == 0:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()
    elif comm.rank == 2:
        time.sleep(1.5)  # rank 1 has read by now, and awaits rank 2
    with pytest.raises(CollectiveFailed) as caught:
        comm.broadcast(buf)
    assert caught.value.ranks == (0,)
