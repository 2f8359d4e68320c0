"""Two ranks pass a cache line back and forth: the least time of synchronising on this machine."""

from __future__ import annotations

import mmap
import tempfile
from pathlib import Path

import numpy as np
from cobre_kernels.machine.atomics import cpu_pause, load_acquire, store_release
from numba import njit

SHARED_MEMORY = "/dev/shm"
APART_BYTES = 128  # two lines, because processors fetch lines in pairs


@njit(nogil=True)
def serve(ball, back, first, calls):
    """Rank 0: make one round trip after another."""
    for number in range(first, first + calls):
        store_release(ball, number)  # read by load_acquire in `return_balls`
        while load_acquire(back) != number:
            cpu_pause()


@njit(nogil=True)
def return_balls(ball, back, first, calls):
    """Rank 1: answer each number when it has been read."""
    for number in range(first, first + calls):
        while load_acquire(ball) != number:
            cpu_pause()
        store_release(back, number)  # read by load_acquire in `serve`


class PingPong:
    """Two words in memory that ranks 0 and 1 of an MPI communicator have mapped."""

    def __init__(self, world) -> None:
        self._memory = shared_page(world)
        address = np.frombuffer(self._memory, dtype=np.uint8).ctypes.data
        self._words = address, address + APART_BYTES
        self._play = serve if world.rank == 0 else return_balls
        self._next = 1

    def loop(self, calls: int) -> None:
        """Make ``calls`` round trips."""
        self._play(*self._words, self._next, calls)
        self._next += calls

    def verify(self) -> None:
        """Check that both words hold the number of the last round trip."""
        words = np.frombuffer(self._memory, dtype=np.int64)
        last = self._next - 1
        if words[0] != last or words[APART_BYTES // words.itemsize] != last:
            raise AssertionError("ping-pong: a round trip is missing")


def shared_page(world) -> mmap.mmap:
    """Return a page of zeros that all ranks share, and that has lost its name."""
    if world.rank == 0:
        with tempfile.NamedTemporaryFile(dir=SHARED_MEMORY, prefix="cobre-bench-") as file:
            file.truncate(mmap.PAGESIZE)
            world.bcast(file.name, 0)
            memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)
            world.Barrier()
        return memory
    with Path(world.bcast(None, 0)).open("r+b") as file:
        memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)
    world.Barrier()
    return memory
