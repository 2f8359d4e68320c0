"""Persistent collectives of MPI 4 beside the blocking ones: should a kernel use them?

    python -m bench.studies.persistent [-n 2 4]

The same buffers, blocks of calls in turn, on COMM_WORLD; every call is made from @njit code by the
function's name, as a kernel would, so that mpi4py's own cost is not in the figures. For a sum, an
allgather of the same bytes is measured too: folded in rank order it is what the mpi backend does.
Results are verified after they are timed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.cases.grid import jobs_of
from bench.plan import Figure, Options, size_label
from bench.ranks.timing import loop_side
from bench.ranks.timing import measure as time_blocks
from bench.report.pages import TABLES
from bench.studies.mpi_symbols import LOOPS, STATUS_BYTES, loop_persistent, register, words_of
from bench.studies.study import measure, parser_of

SETTING = "persistent"
SIZES = {
    "sum": [8, 32, 4096, 32768, 524_288, 8 * 2**20],
    "allgather": [32, 4096, 200_000, 12_900_000],
    "broadcast": [32, 10_000, 8 * 2**20],
}
NAMES = {"sum": "allreduce"}


@dataclass(frozen=True)
class Call:
    """A measurement of this program: an operation on so many bytes of each rank."""

    operation: str
    nbytes: int = 0

    @property
    def label(self) -> str:
        name = NAMES.get(self.operation, self.operation)
        return f"{name} {size_label(self.nbytes)}" if self.nbytes else name


CALLS = [Call("barrier"), *(Call(name, n) for name, sizes in SIZES.items() for n in sizes)]


def contribution(rank: int, count: int) -> np.ndarray:
    return (np.arange(count) % 1000 + 1.0) * (rank + 1)


class Way:
    """One way to make one collective: a loop of so many calls, and a check of what it leaves.

    Parameters
    ----------
    mpi, world
        mpi4py's module, and the communicator.
    operation : str
        "barrier", "sum", "allgather" or "broadcast".
    nbytes : int
        Of each rank.
    persistent : bool
        Made once and started for each call, or called each time.
    """

    def __init__(self, mpi, world, operation: str, nbytes: int, persistent: bool) -> None:
        self._rank, self._size, self._operation = world.rank, world.size, operation
        root_only = operation == "broadcast" and world.rank != 0
        self._send = np.zeros(nbytes // 8) if root_only else contribution(world.rank, nbytes // 8)
        gathered = world.size if operation == "allgather" else 1
        self._recv = np.full(nbytes // 8 * gathered, -1.0)
        self._request = self._init(world) if persistent else None
        if persistent:
            status = self._status = np.zeros(STATUS_BYTES, np.uint8)
            self.loop = partial(loop_persistent, mpi._addressof(self._request), status.ctypes.data)
        else:
            words = words_of(mpi, world, operation, self._send, self._recv)
            self.loop = partial(LOOPS[operation], words)

    def _init(self, world):
        if self._operation == "barrier":
            return world.Barrier_init()
        if self._operation == "broadcast":
            return world.Bcast_init(self._send, 0)
        made = world.Allreduce_init if self._operation == "sum" else world.Allgather_init
        return made(self._send, self._recv)

    def finish(self) -> None:
        """Verify and let the request go."""
        everyone = [contribution(r, self._send.size) for r in range(self._size)]
        expected = {
            "barrier": lambda: self._recv,
            "broadcast": lambda: everyone[0],
            "sum": lambda: np.sum(everyone, axis=0),  # of small integers: any order is exact
            "allgather": lambda: np.concatenate(everyone),
        }[self._operation]()
        actual = self._send if self._operation == "broadcast" else self._recv
        if not np.array_equal(actual, expected):
            raise AssertionError(f"{self._operation} of {self._send.nbytes} bytes: wrong result")
        if self._request is not None:
            self._request.Free()


def take(world, asked: Call, options: Options) -> dict:
    """Return the samples of each way; the results are verified."""
    register(world.mpi)
    args = world.mpi, world.comm
    ways = {
        "persistent": Way(*args, asked.operation, asked.nbytes, persistent=True),
        "blocking": Way(*args, asked.operation, asked.nbytes, persistent=False),
    }
    if asked.operation == "sum":
        ways["allgather"] = Way(*args, "allgather", asked.nbytes, persistent=False)
    sides = {name: loop_side(way.loop) for name, way in ways.items()}
    found = time_blocks(sides, world.slowest, options)
    for way in ways.values():
        way.finish()
    return found


def main() -> None:
    options = parser_of(__doc__, ranks=[2, 4]).parse_args()
    asked = [
        Figure(job, call, side, call.label, call.operation, call.nbytes, setting=SETTING)
        for job in jobs_of(options.ranks, program="studies.persistent")
        for call in CALLS
        for side in ("persistent", "blocking", *["allgather"] * (call.operation == "sum"))
    ]
    measure("persistent", asked, options, TABLES["persistent"])


if __name__ == "__main__":
    main()
