"""A rank of test_waiting.py: barriers of many ranks on two cores, and bare context switches.

All ranks of the job share ``CORES`` cores. A bare context switch is what the kernel takes to stop a
process and to run another one of the same core: two processes, pinned to it, hand a word back and
forth, each waking the other and then sleeping, by futex(2). No rank can leave a barrier of R ranks
before each has run once since the last one, so a barrier costs at least R switches, on all cores
together, and R such switches are the loop that it is compared with: ``calls`` of them take
``calls * R`` switches, once spread over the cores, of which each has a pair of its own, and once on
one core alone.

The ranks meet through our communicator, where they sleep: those of MPI would spin all the time.
"""

from __future__ import annotations

import argparse
import json
import os
from functools import partial

import numpy as np
from cobre_kernels import libc
from cobre_kernels.atomics import load_acquire, store_release
from mpi_loops import measure_loops
from mpi_numba import OURS as OUR_LOOPS
from mpi_sides import our_communicator
from mpi_start import MARK, library_name
from numba import njit
from ping_pong import APART_BYTES, shared_page

CORES = 2
PAIR = 2
LONGEST_SLEEP_NS = 1_000_000_000


@njit(nogil=True)
def hand_over(mine, theirs, first, count, begins, scratch):
    """Hand a word to the other process of the pair and sleep until it comes back, so often."""
    for number in range(first, first + count):
        if begins:
            store_release(mine, number)  # read by load_acquire in `sleep_until`, there
            libc.futex_wake_all(mine)
            sleep_until(theirs, number, scratch)
        else:
            sleep_until(theirs, number, scratch)
            store_release(mine, number)  # likewise
            libc.futex_wake_all(mine)


@njit(nogil=True)
def sleep_until(word, number, scratch):
    while True:
        seen = load_acquire(word)
        if seen == number:
            return
        libc.futex_wait(word, seen, LONGEST_SLEEP_NS, scratch)


class Switches:
    """Switches between the processes of pairs, of which each is pinned to a core.

    Parameters
    ----------
    world : mpi4py.MPI.Intracomm
        All ranks; the first two are the first pair, and so on.
    pairs : int
        How many take part; other ranks sleep meanwhile.
    cores : list of int
        The cores that the job has.
    """

    def __init__(self, world, pairs: int, cores: list[int]) -> None:
        self._cores, self._pair = cores, world.rank // PAIR
        self._takes_part = self._pair < pairs
        self._trips = world.size // (PAIR * pairs)  # there and back are two switches
        self._begins = world.rank % PAIR == 0
        self._page = shared_page(world)
        address = np.frombuffer(self._page, dtype=np.uint8).ctypes.data
        words = [address + (self._pair * PAIR + i) * APART_BYTES for i in range(PAIR)]
        self._words = words if self._begins else words[::-1]
        self._scratch = np.zeros(libc.SCRATCH_WORDS, dtype=np.int64)
        self._next = 1

    def loop(self, calls: int) -> None:
        """Make R times as many switches; pinning takes microseconds of it."""
        if not self._takes_part:
            return
        os.sched_setaffinity(0, {self._cores[self._pair]})
        count = calls * self._trips
        hand_over(*self._words, self._next, count, self._begins, self._scratch.ctypes.data)
        self._next += count
        os.sched_setaffinity(0, self._cores)


def python_loop(call):
    def loop(calls: int) -> None:
        for _ in range(calls):
            call()

    return loop


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--block", type=float, required=True)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    os.sched_setaffinity(0, cores)  # before MPI starts threads, and before we count cores
    from mpi4py import MPI

    from cobre_comm import ReduceOp

    world = MPI.COMM_WORLD
    if len(cores) < CORES or world.size % (PAIR * CORES):
        raise SystemExit(f"{world.size} ranks on {len(cores)} cores: pairs do not come out even")
    send, recv = np.zeros(1), np.zeros(1)
    with our_communicator("shm", world) as comm:

        def slowest(seconds: float) -> float:
            send[0] = seconds
            comm.allreduce(send, recv, ReduceOp.MAX)
            return float(recv[0])

        loops = {
            "python": python_loop(comm.barrier),
            "njit": partial(OUR_LOOPS["barrier"], comm, None, None, None, None),
            "context switches": Switches(world, CORES, cores).loop,
            "context switches on one core": Switches(world, 1, cores).loop,
            "peer": python_loop(world.Barrier),
        }
        samples = measure_loops(loops, slowest, options.rounds, options.block)
    if world.rank == 0:
        print(MARK + json.dumps({"mpi": library_name(MPI), "samples": samples}))


if __name__ == "__main__":
    main()
