"""Every rank writes a part of shared data, and all ranks then read all of it.

Three ways lead to the same state, and take turns in the same processes. The first way is a shared
region of ours and `fence`. In the second way, each rank fills a buffer of its own, and our
`allgatherv` gives every rank a copy. The third way is a window of MPI (`MPI_Win_allocate_shared`)
and `MPI_Win_fence`. The values change with every call, and are computed in place, as in a program.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numba import njit

from bench.plan import PEER, Options
from bench.ranks.timing import loop_side, measure

BUFFERS = 2  # buffers of each way, so that a call does not find the cache lines of the call before


@dataclass(frozen=True)
class Region:
    """A measurement of this program, by the bytes of all parts together."""

    nbytes: int


@njit(nogil=True)
def populate(part, first, key):
    """Fill a rank's part with values that depend on the index and on the call's number."""
    for i in range(part.size):
        part[i] = key + np.float64(first + i)


@dataclass(frozen=True)
class Parts:
    """The lengths and beginnings of all ranks' parts, and the bounds of this rank's part."""

    counts: np.ndarray
    displs: np.ndarray
    start: int
    stop: int


def parts_of(count: int, world) -> Parts:
    edges = np.array([r * count // world.size for r in range(world.size + 1)], dtype=np.int64)
    return Parts(np.diff(edges), edges[:-1], *map(int, edges[world.rank : world.rank + 2]))


class Way:
    """A way: populate this rank's part, which begins at ``first``, then show the part to all ranks.

    The way has several buffers, and uses them in turn. A buffer is this rank's part, a function
    that makes all parts visible to all ranks, and the whole that each rank can then read.
    """

    def __init__(self, first: int, buffers: list) -> None:
        self._first, self._buffers = first, buffers
        self._keys = [0.0] * len(buffers)
        self._calls = 0

    def loop(self, calls: int) -> None:
        for _ in range(calls):
            number = self._calls % len(self._buffers)
            part, share, _ = self._buffers[number]
            self._calls += 1
            self._keys[number] = float(self._calls)
            populate(part, self._first, self._keys[number])
            share()

    def verify(self) -> None:
        for (_, _, view), key in zip(self._buffers, self._keys, strict=True):
            if not np.array_equal(view, key + np.arange(len(view))):
                raise AssertionError("a part is not there, or not the last one")


def take(world, asked: Region, options: Options) -> dict:
    """Return the samples of each way, with results that were verified."""
    count = asked.nbytes // 8
    parts = parts_of(count, world)
    mine = slice(parts.start, parts.stop)
    with world.communicator("shm") as comm:
        regions = [comm.create_shared_region(count) for _ in range(BUFFERS)]
        pairs = [(np.zeros(parts.stop - parts.start), np.zeros(count)) for _ in range(BUFFERS)]
        windows = [new_window(asked.nbytes, world) for _ in range(BUFFERS)]
        gather = partial(partial, comm.allgatherv)
        ways = {
            "shm": [(r.part(parts.start, parts.stop), r.fence, r.as_slice()) for r in regions],
            "allgatherv": [(a, gather(a, b, parts.counts, parts.displs), b) for a, b in pairs],
            PEER: [(view[mine], window.Fence, view) for window, view in windows],
        }
        made = {name: Way(parts.start, buffers) for name, buffers in ways.items()}
        sides = {name: loop_side(way.loop) for name, way in made.items()}
        found = measure(sides, world.slowest, options)
        comm.barrier()
        for way in made.values():
            way.verify()
    for window, _ in windows:
        window.Fence()
        window.Free()
    return found


def new_window(nbytes: int, world) -> tuple:
    """Return a window of MPI's shared memory that is open for writing, and its array."""
    mine = nbytes if world.rank == 0 else 0
    window = world.mpi.Win.Allocate_shared(mine, 8, comm=world.comm)
    window.Fence()
    return window, np.frombuffer(window.Shared_query(0)[0], dtype=np.float64)
