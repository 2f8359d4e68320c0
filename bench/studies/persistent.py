"""Persistent collectives of MPI 4 beside the blocking ones: should a kernel use them?

    python -m bench.studies persistent [-n 2 4]

Both kinds of calls have equal buffers, and take turns in blocks, on COMM_WORLD. @njit code calls
each function by its name, as a kernel would, so that the figures do not include mpi4py's own cost.
Results are verified after the timing. Our allreduce would need an allgather of the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.cases.grid import jobs_of
from bench.plan import Figure, Options, size_label
from bench.ranks.njit.loops import Buffers
from bench.ranks.timing import loop_side
from bench.ranks.timing import measure as measure_blocks
from bench.report.pages import TABLES
from bench.studies.mpi_symbols import LOOPS, STATUS_BYTES, loop_persistent, register, words_of
from bench.studies.study import measure, parser_of

SETTING = "persistent"
SIZES = {
    "allreduce": [8, 32, 4096, 32768, 524_288, 8 * 2**20],
    "allgatherv": [32, 4096, 200_000, 12_900_000],
    "broadcast": [32, 10_000, 8 * 2**20],
}


@dataclass(frozen=True)
class Call:
    """A measurement of this program: an operation on so many bytes of each rank."""

    operation: str
    nbytes: int = 0

    @property
    def label(self) -> str:
        return f"{self.operation} {size_label(self.nbytes)}" if self.nbytes else self.operation


CALLS = [Call("barrier"), *(Call(name, n) for name, sizes in SIZES.items() for n in sizes)]


def contribution(rank: int, count: int) -> np.ndarray:
    return (np.arange(count) % 1000 + 1.0) * (rank + 1)


def persistent_request(world, operation: str, buffers: Buffers):
    """Return a request that is started for each call."""
    if operation == "barrier":
        return world.Barrier_init()
    if operation == "broadcast":
        return world.Bcast_init(buffers.recv, 0)
    made = world.Allreduce_init if operation == "allreduce" else world.Allgather_init
    return made(buffers.send, buffers.recv)


def take(world, asked: Call, options: Options) -> dict:
    """Return the samples of each way; the results are verified."""
    register(world.mpi)
    buffers = Buffers(asked.operation, asked.nbytes, world.rank, world.size)
    request = persistent_request(world.comm, asked.operation, buffers)
    status = np.zeros(STATUS_BYTES, np.uint8)
    blocking = Buffers(asked.operation, asked.nbytes, world.rank, world.size)
    words = words_of(world.mpi, world.comm, asked.operation, blocking)
    loops = {
        "persistent": partial(loop_persistent, world.mpi._addressof(request), status.ctypes.data),
        "blocking": partial(LOOPS[asked.operation], words),
    }
    found = measure_blocks({n: loop_side(f) for n, f in loops.items()}, world.slowest, options)
    request.Free()
    buffers.verify()
    blocking.verify()
    return found


def main() -> None:
    options = parser_of(__doc__, ranks=[2, 4]).parse_args()
    asked = [
        Figure(job, call, side, call.label, call.operation, call.nbytes, setting=SETTING)
        for job in jobs_of(options.ranks, program="studies.persistent")
        for call in CALLS
        for side in ("persistent", "blocking")
    ]
    measure("persistent", asked, options, TABLES["persistent"])
