"""Barriers of many ranks on two cores, and bare context switches.

All ranks of the job share ``CORES`` cores. In a bare context switch the kernel stops a process and
runs another process on the same core. Two processes, pinned to the core, pass a word back and forth
by futex(2): each process wakes the other and then sleeps. Between two barriers each of R ranks has
to run once, so a barrier costs at least R switches on all cores together. So ``calls`` barriers are
compared with ``calls * R`` switches. On each core, a pair of processes makes an equal share of
these switches.

The ranks meet through our communicator, in which they sleep; in MPI they would spin all the time.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial

import numpy as np
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import load_acquire, store_release
from numba import njit

from bench.plan import PEER, Options
from bench.ranks.njit.calls import our_barrier
from bench.ranks.njit.ping_pong import APART_BYTES, shared_page
from bench.ranks.timing import loop_side, measure, python_loop

SWITCHES = "context switches"
CORES = 2
PAIR = 2
LONGEST_SLEEP_NS = 1_000_000_000


@dataclass(frozen=True)
class Crowd:
    """A measurement of this program: barriers called from ``python`` or ``njit``."""

    caller: str


@njit(nogil=True)
def hand_over(mine, theirs, first, count, begins, scratch):
    """Pass a word to the pair's other process ``count`` times; sleep until the word is back."""
    for number in range(first, first + count):
        if begins:
            # read by load_acquire in `sleep_until` of the other process
            store_release(mine, number)
            libc.futex_wake_all(mine)
            sleep_until(theirs, number, scratch)
        else:
            sleep_until(theirs, number, scratch)
            store_release(mine, number)  # read by load_acquire in `sleep_until`, too
            libc.futex_wake_all(mine)


@njit(nogil=True)
def sleep_until(word, number, scratch):
    while True:
        seen = load_acquire(word)
        if seen == number:
            return
        libc.futex_wait(word, seen, LONGEST_SLEEP_NS, scratch)


class Switches:
    """Switches between the processes of pairs; each pair is pinned to a core.

    The first two ranks of a job are the first pair, and so on; ranks of no pair sleep meanwhile.
    """

    def __init__(self, world, cores: list[int]) -> None:
        self._cores, self._pair = cores, world.rank // PAIR
        self._takes_part = self._pair < len(cores)
        self._trips = world.size // (PAIR * len(cores))  # a trip there and back takes two switches
        self._begins = world.rank % PAIR == 0
        self._page = shared_page(world)
        address = np.frombuffer(self._page, dtype=np.uint8).ctypes.data
        words = [address + (self._pair * PAIR + i) * APART_BYTES for i in range(PAIR)]
        self._words = words if self._begins else words[::-1]
        self._scratch = np.zeros(libc.SCRATCH_WORDS, dtype=np.int64)
        self._next = 1

    def loop(self, calls: int) -> None:
        """Make R switches for each of ``calls``; the time includes microseconds for pinning."""
        if not self._takes_part:
            return
        os.sched_setaffinity(0, {self._cores[self._pair]})
        count = calls * self._trips
        hand_over(*self._words, self._next, count, self._begins, self._scratch.ctypes.data)
        self._next += count
        os.sched_setaffinity(0, self._cores)


def take(world, asked: Crowd, options: Options) -> dict:
    """Return the samples of our barrier, of the library's barrier, and of the switches."""
    from cobre_comm import ReduceOp

    cores = sorted(os.sched_getaffinity(0))[:CORES]
    if len(cores) < CORES or world.size % (PAIR * CORES):
        raise ValueError(f"{world.size} ranks on {len(cores)} cores: pairs do not come out even")
    os.sched_setaffinity(0, cores)  # before our communicator counts the cores
    send, recv = np.zeros(1), np.zeros(1)
    with world.communicator("shm") as comm:

        def slowest(seconds: float) -> float:
            send[0] = seconds
            comm.allreduce(send, recv, ReduceOp.MAX)
            return float(recv[0])

        in_njit = loop_side(partial(our_barrier, comm, None, None, None, None))
        sides = {
            "shm": python_loop(comm.barrier) if asked.caller == "python" else in_njit,
            SWITCHES: loop_side(Switches(world.comm, cores).loop),
            PEER: python_loop(world.comm.Barrier),
        }
        return measure(sides, slowest, options)
