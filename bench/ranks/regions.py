"""Data of which every rank writes a part and that all ranks then read.

Three ways to the same state, in turn in the same processes: a shared region of ours and `fence`;
the part into a buffer of one's own and our `allgatherv`, after which every rank has a copy; and a
window of MPI (`MPI_Win_allocate_shared`) and `MPI_Win_fence`. The values change with every call,
and are computed in place in all of them, as a program's are. The gathering without the computing
is timed as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numba import njit

from bench.plan import PEER, Options
from bench.ranks.timing import loop_side, measure

MOST_ROUNDS = 5  # of creating, which takes as long as a block each time
SLOTS = 2  # of each side; a call does not find the lines that the last one wrote


@dataclass(frozen=True)
class Region:
    """A measurement of this program: ``populate``, ``create``, or ``use``, which is both.

    ``nbytes`` are those of all parts together.
    """

    case: str
    nbytes: int


@njit(nogil=True)
def populate(part, first, key):
    """Write into a rank's part what can be told from the place and the number of the call."""
    for i in range(part.size):
        part[i] = key + np.float64(first + i)


class Way:
    """Slots in turn: populate this rank's part, then make it visible to all.

    Parameters
    ----------
    edges : tuple of int
        Where this rank's part begins and ends.
    slots : list
        Of pairs: this rank's part, and a function that makes all parts visible to all.
    views : list of numpy.ndarray
        What each rank can then read, of each slot.
    """

    def __init__(self, edges, slots: list, views: list) -> None:
        self._first, self._slots, self._views = edges[0], slots, views
        self._keys = [0.0] * len(slots)
        self._calls = 0

    def loop(self, calls: int) -> None:
        for _ in range(calls):
            number = self._calls % len(self._slots)
            part, share = self._slots[number]
            self._calls += 1
            self._keys[number] = float(self._calls)
            populate(part, self._first, self._keys[number])
            share()

    def share_only(self, calls: int) -> None:
        """Without writing anything new."""
        for number in range(calls):
            self._slots[number % len(self._slots)][1]()

    def verify(self) -> None:
        for view, key in zip(self._views, self._keys, strict=True):
            if not np.array_equal(view, key + np.arange(len(view))):
                raise AssertionError("a part is not there, or not the last one")


def parts(count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the length and the beginning of every rank's part."""
    edges = np.array([r * count // size for r in range(size + 1)], dtype=np.int64)
    return np.diff(edges), edges[:-1]


def region_way(comm, count: int, edges) -> Way:
    regions = [comm.create_shared_region(count) for _ in range(SLOTS)]
    slots = [(region.block(*edges), region.fence) for region in regions]
    return Way(edges, slots, [region.as_slice() for region in regions])


def gathering_way(comm, count: int, edges, counts, displs) -> Way:
    sends = [np.zeros(edges[1] - edges[0]) for _ in range(SLOTS)]
    recvs = [np.zeros(count) for _ in range(SLOTS)]
    pairs = list(zip(sends, recvs, strict=True))
    slots = [(send, partial(comm.allgatherv, send, recv, counts, displs)) for send, recv in pairs]
    return Way(edges, slots, recvs)


def window_way(world, count: int, edges, windows: list) -> Way:
    from mpi4py import MPI

    for _ in range(SLOTS):
        mine = count * 8 if world.rank == 0 else 0
        windows.append(MPI.Win.Allocate_shared(mine, 8, comm=world))
    views = [np.frombuffer(window.Shared_query(0)[0], dtype=np.float64) for window in windows]
    for window in windows:
        window.Fence()
    slots = [
        (view[slice(*edges)], window.Fence) for view, window in zip(views, windows, strict=True)
    ]
    return Way(edges, slots, views)


def take(world, asked: Region, options: Options) -> dict:
    """Return the samples of each way."""
    with world.communicator("shm") as comm:
        if asked.case == "populate":
            return populated(asked.nbytes, comm, world, options)
        few = replace(options, rounds=min(options.rounds, MOST_ROUNDS))
        return created(asked.nbytes, asked.case == "use", comm, world, few)


def populated(nbytes: int, comm, world, options: Options) -> dict:
    """Return the samples by way; the results are verified."""
    count = nbytes // 8
    counts, displs = parts(count, world.size)
    edges = int(displs[world.rank]), int(displs[world.rank] + counts[world.rank])
    windows: list = []
    ways = {
        "shm": region_way(comm, count, edges),
        "allgatherv": gathering_way(comm, count, edges, counts, displs),
        PEER: window_way(world.comm, count, edges, windows),
    }
    loops = {name: way.loop for name, way in ways.items()}
    loops["allgatherv alone"] = ways["allgatherv"].share_only
    found = measure({n: loop_side(loop) for n, loop in loops.items()}, world.slowest, options)
    comm.barrier()
    for way in ways.values():
        way.verify()
    for window in windows:
        window.Fence()
        window.Free()
    return found


def created(nbytes: int, used: bool, comm, world, options: Options) -> dict:
    """Return the samples of creating a region, or a window, populating it if used, and closing it.

    Ours has its memory when it is there, a window of MPI gets it with the first use.
    """
    counts, displs = parts(nbytes // 8, world.size)
    start, stop = int(displs[world.rank]), int(displs[world.rank] + counts[world.rank])

    def ours(calls: int) -> None:
        for _ in range(calls):
            with comm.create_shared_region(nbytes // 8) as region:
                if used:
                    populate(region.block(start, stop), start, 1.0)
                    region.fence()

    def theirs(calls: int) -> None:
        for _ in range(calls):
            mine = nbytes if world.rank == 0 else 0
            window = world.mpi.Win.Allocate_shared(mine, 8, comm=world.comm)
            if used:
                window.Fence()
                view = np.frombuffer(window.Shared_query(0)[0], dtype=np.float64)
                populate(view[start:stop], start, 1.0)
                window.Fence()
            window.Free()

    sides = {"shm": loop_side(ours), PEER: loop_side(theirs)}
    return measure(sides, world.slowest, options)
