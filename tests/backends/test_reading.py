"""The ways of a large call of private memory: slots, reads, and writes of the root (ways.py)."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from cobre_kernels.shm import ways
from cobre_kernels.shm.control import PAGE_BYTES
from cobre_kernels.shm.ways import BOTH, FASTEST, READ, SLOTS, STREAMED

from cobre_comm import CollectiveFailed
from tests.forked import on_forks

LEAST = 2**ways.LEAST_SHIFT
LENGTH = 2**23 + 4099  # not a multiple of a word; longer than a slot
# Lengths around the least large call and one page more, and lengths that end within a word.
LENGTHS = (
    *(LEAST + more for more in (-1, 0, 1, PAGE_BYTES - 1, PAGE_BYTES, PAGE_BYTES + 1)),
    5 * LEAST - 3,
    2**20 + 2**19 + 7,  # the shares of two and three ranks have more than one piece
)
READ_STEPS = 2  # the steps of a call that takes no slots


def values(length, rank, number=0):
    return np.resize(((np.arange(251) * 7 + rank * 31 + number) % 251).astype(np.uint8), length)


def steps_of(comm, call, *arguments):
    """Call, and return how many steps the call took."""
    before = comm._comm.node.generation
    call(*arguments)
    return comm._comm.node.generation - before


def broadcast_from(comm, root, number=0, length=LENGTH, buf=None):
    """Broadcast, check every byte, and return how many steps the broadcast took."""
    expected = values(length, root, number)
    buf = np.empty(length, np.uint8) if buf is None else buf
    buf[:] = expected if comm.rank == root else 0
    steps = steps_of(comm, comm.broadcast, buf, root)
    assert buf.tobytes() == expected.tobytes()
    return steps


def gather_of(comm, counts, number=0, *, in_place=False):
    """Gather blocks, with a gap before each, check every byte, and return the steps."""
    displs = np.cumsum([count + 3 for count in counts]) - counts
    expected = np.full(displs[-1] + counts[-1] + 5, 7, np.uint8)
    for rank, (begin, count) in enumerate(zip(displs, counts, strict=True)):
        expected[begin : begin + count] = values(count, rank, number)
    recv = np.full(expected.size, 7, np.uint8)
    send = values(counts[comm.rank], comm.rank, number)
    if in_place:
        own = recv[displs[comm.rank] :][: send.size]
        own[:] = send
        send = own
    steps = steps_of(comm, comm.allgatherv, send, recv, np.array(counts), displs)
    assert recv.tobytes() == expected.tobytes()
    return steps


def gather_equal(comm, number=0):
    return gather_of(comm, [LENGTH] * comm.size, number)


def is_refused(comm):
    return bool(comm._comm.node.reading.is_refused)


class Forced:
    """Forces a way on the communicator of a pool, and leaves the communicator as it was."""

    def __init__(self, comm, way):
        self.comm, self.node, self.way = comm, comm._comm.node, way

    def __enter__(self):
        self.node.forced_way = self.way

    def __exit__(self, *caught):
        self.node.forced_way = FASTEST


def skip_if_refused(comm):
    with Forced(comm, BOTH):
        broadcast_from(comm, 0, length=LEAST)
    if is_refused(comm):
        pytest.skip("the system does not permit it")


@pytest.mark.ranks(2, 3, 4, backends=["shm", "tcp"])
def test_every_way_gives_the_same_bytes(comm):
    skip_if_refused(comm)
    for way in (SLOTS, STREAMED, READ, BOTH):
        with Forced(comm, way):
            for number, length in enumerate(LENGTHS):
                is_read = way in (READ, BOTH) and length >= LEAST
                for root in range(comm.size):
                    steps = broadcast_from(comm, root, number, length)
                    assert steps == READ_STEPS or not is_read, (way, length)
                uneven = [length if rank % 2 else length // 3 + rank for rank in range(comm.size)]
                steps = gather_of(comm, uneven, number, in_place=number % 2 == 1)
                assert steps == READ_STEPS or not is_read, (way, length)
            is_read = way in (READ, BOTH)
            assert gather_of(comm, [*[0] * (comm.size - 1), LENGTH]) == READ_STEPS or not is_read
            assert broadcast_from(comm, 0, number) == READ_STEPS or not is_read


@on_forks(7, "shm")
def test_shares_that_are_empty(comm):
    """Six shares of three pages exceed 16 pages, so the last reader begins at the buffer's end."""
    for way in (READ, BOTH):
        with Forced(comm, way):
            for root in range(comm.size):
                for more in (0, 1, PAGE_BYTES):
                    broadcast_from(comm, root, more, LEAST + more)


def show_another(comm, another):
    """Let rank 1 show its peers the id of another process than its own."""
    pids = np.empty(comm.size, np.int64)
    comm.allgather(np.array([os.getpid()]), pids)
    if comm.rank == 1:
        shown = {"no process": 2**31 - 1, "the parent": os.getppid(), "a reader": int(pids[2])}
        comm._comm.node.reading.own.pid = shown[another]


@pytest.mark.parametrize("another", ["no process", "the parent", "a reader"])
@on_forks(3, "shm")
def test_ranks_that_cannot_read_begin_anew_and_do_not_try_again(comm, another):
    """A rank's process id names no process, or a wrong one, for peers in other PID namespaces."""
    comm._comm.node.forced_way = READ
    show_another(comm, another)
    first = broadcast_from(comm, 1)
    assert is_refused(comm)
    second = broadcast_from(comm, 1, 1)
    assert first == second + READ_STEPS
    assert second > READ_STEPS
    assert broadcast_from(comm, 0, 2) == second


@on_forks(3, "shm")
def test_an_allgatherv_begins_anew_if_one_array_cannot_be_read(comm):
    comm._comm.node.forced_way = READ
    show_another(comm, "a reader")
    first = gather_equal(comm)
    assert is_refused(comm)
    second = gather_equal(comm, 1)
    assert first == second + READ_STEPS
    assert second > READ_STEPS


@on_forks(3, "shm")
def test_a_root_that_cannot_write_makes_all_ranks_begin_anew(comm):
    """Every rank reads the root's array, but rank 1 shows the root a process that is not its own.

    A reader's process is of no interest to other readers, so only the root's write is denied.
    """
    comm._comm.node.forced_way = BOTH
    show_another(comm, "the parent")
    first = broadcast_from(comm, 0)
    assert is_refused(comm)
    assert first == broadcast_from(comm, 2, 1) + READ_STEPS


@pytest.mark.ranks(3, backends=["shm"])
def test_a_rank_whose_buffer_is_in_a_region(comm):
    skip_if_refused(comm)
    with comm.create_shared_region(LENGTH * comm.size, np.uint8) as region:
        own = region.part(comm.rank * LENGTH, (comm.rank + 1) * LENGTH)
        for way in (READ, BOTH, FASTEST):
            with Forced(comm, way):
                for number in range(comm.size):
                    in_region = comm.rank == number
                    broadcast_from(comm, 0, number, buf=own if in_region else None)
                assert broadcast_from(comm, 2, 9) == READ_STEPS or way == FASTEST
        region.fence()
    assert not is_refused(comm)


@pytest.mark.parametrize("way", [READ, BOTH])
@on_forks(3, "shm", killed=1)
def test_a_root_that_dies_before_it_is_read_is_named(comm, way):
    comm._comm.node.forced_way = way
    buf = np.zeros(LENGTH, np.uint8)
    comm.barrier()
    if comm.rank == 0:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()
    elif comm.rank == 2:
        time.sleep(0.6)  # rank 1 has read by now, and awaits rank 2
    with pytest.raises(CollectiveFailed) as caught:
        comm.broadcast(buf)
    assert caught.value.ranks == (0,)
