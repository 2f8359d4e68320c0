"""A rank of test_regions.py: data that every rank writes a part of and all ranks then read.

Three ways to the same state, in turn in the same processes: a shared region of ours and `fence`;
the part into a buffer of one's own and our `allgatherv`, after which every rank has a copy; and a
window of MPI (`MPI_Win_allocate_shared`) and `MPI_Win_fence`. The values change with every call,
and are computed in place in all of them, as a program's are. The gathering without the computing
is timed as well.
"""

from __future__ import annotations

import argparse
import json
import os
from functools import partial

import numpy as np
from mpi_loops import measure_loops
from mpi_sides import our_communicator
from mpi_start import MARK, library_name
from numba import njit

MOST_ROUNDS = 5  # of creating, which takes as long as a block each time
SLOTS = 2  # of each side; a call does not find the lines that the last one wrote


@njit(nogil=True)
def populate(part, first, key):
    """Write into a rank's part what can be told from the place and the number of the call."""
    for i in range(part.size):
        part[i] = key + np.float64(first + i)


class Side:
    """Slots in turn: populate this rank's part, then make it everyone's.

    Parameters
    ----------
    edges : tuple of int
        Where this rank's part begins and ends.
    slots : list
        Of pairs: this rank's part, and a function that makes all parts everyone's.
    views : list of numpy.ndarray
        What everyone can then read, of each slot.
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


def parts(count: int, rank: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the length and the beginning of every rank's part."""
    edges = np.array([r * count // size for r in range(size + 1)], dtype=np.int64)
    return np.diff(edges), edges[:-1]


def region_side(comm, count: int, edges) -> Side:
    regions = [comm.create_shared_region(count) for _ in range(SLOTS)]
    slots = [(region.block(*edges), region.fence) for region in regions]
    return Side(edges, slots, [region.as_slice() for region in regions])


def gathering_side(comm, count: int, edges, counts, displs) -> Side:
    sends = [np.zeros(edges[1] - edges[0]) for _ in range(SLOTS)]
    recvs = [np.zeros(count) for _ in range(SLOTS)]
    pairs = list(zip(sends, recvs, strict=True))
    slots = [(send, partial(comm.allgatherv, send, recv, counts, displs)) for send, recv in pairs]
    return Side(edges, slots, recvs)


def window_side(world, count: int, edges, windows: list) -> Side:
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
    return Side(edges, slots, views)


def populated(nbytes: int, comm, world, measure) -> dict[str, list[float]]:
    """Return the seconds per call of each block, by side; the results are verified."""
    count = nbytes // 8
    counts, displs = parts(count, world.rank, world.size)
    edges = int(displs[world.rank]), int(displs[world.rank] + counts[world.rank])
    windows: list = []
    sides = {
        "cobre_comm": region_side(comm, count, edges),
        "allgatherv": gathering_side(comm, count, edges, counts, displs),
        "peer": window_side(world, count, edges, windows),
    }
    loops = {name: side.loop for name, side in sides.items()}
    samples = measure({**loops, "allgatherv alone": sides["allgatherv"].share_only})
    comm.barrier()
    for side in sides.values():
        side.verify()
    for window in windows:
        window.Fence()
        window.Free()
    return samples


def created(nbytes: int, used: bool, comm, world, measure) -> dict[str, list[float]]:
    """Return the seconds to create a region, or a window, to populate it if used, and to close it.

    Ours has its memory when it is there, a window of MPI gets it with the first use.
    """
    from mpi4py import MPI

    counts, displs = parts(nbytes // 8, world.rank, world.size)
    start, stop = int(displs[world.rank]), int(displs[world.rank] + counts[world.rank])

    def ours(calls: int) -> None:
        for _ in range(calls):
            with comm.create_shared_region(nbytes // 8) as region:
                if used:
                    populate(region.block(start, stop), start, 1.0)
                    region.fence()

    def theirs(calls: int) -> None:
        for _ in range(calls):
            window = MPI.Win.Allocate_shared(nbytes if world.rank == 0 else 0, 8, comm=world)
            if used:
                window.Fence()
                view = np.frombuffer(window.Shared_query(0)[0], dtype=np.float64)
                populate(view[start:stop], start, 1.0)
                window.Fence()
            window.Free()

    return measure({"cobre_comm": ours, "peer": theirs})


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("populate", "create", "use"):
        parser.add_argument(f"--{name}", type=int, nargs="*", default=[], metavar="BYTES")
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--block", type=float, required=True)
    options = parser.parse_args()
    os.environ.setdefault("OMPI_MCA_osc", "^ucx")  # else one complaint for each window
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    slowest = partial(world.allreduce, op=MPI.MAX)
    measure = partial(measure_loops, slowest=slowest, rounds=options.rounds, block_s=options.block)
    rounds = min(options.rounds, MOST_ROUNDS)
    few = partial(measure_loops, slowest=slowest, rounds=rounds, block_s=options.block)
    with our_communicator("shm", world) as comm:
        samples = {
            "populate": {n: populated(n, comm, world, measure) for n in options.populate},
            "create": {n: created(n, False, comm, world, few) for n in options.create},
            "use": {n: created(n, True, comm, world, few) for n in options.use},
        }
    if world.rank == 0:
        print(MARK + json.dumps({"mpi": library_name(MPI), **samples}))


if __name__ == "__main__":
    main()
