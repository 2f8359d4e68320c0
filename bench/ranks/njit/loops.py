"""Loops of calls in @njit: ours, numba-mpi's, and a cache line that two cores hand back and forth.

The buffers are the same in every call and fit into the first-level cache, like the bounds that a
program reduces in its loop.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from bench.plan import BACKENDS, Options
from bench.ranks.njit.calls import OURS, numba_mpi_loops
from bench.ranks.njit.ping_pong import PingPong
from bench.ranks.timing import loop_side, measure

NUMBA_MPI, PING_PONG = "numba-mpi", "ping-pong"
numba_mpi = cache(numba_mpi_loops)  # compiled once in a job


@dataclass(frozen=True)
class NjitLoop:
    """A measurement of this program: an operation, bytes of each rank, libraries."""

    operation: str
    nbytes: int
    sides: tuple[str, ...]


def has_numba_mpi() -> bool:
    return importlib.util.find_spec("numba_mpi") is not None


def contribution(rank: int, count: int) -> np.ndarray:
    return np.arange(count) + 1000.0 * rank


class Buffers:
    """The buffers of one side, and a check of their contents."""

    def __init__(self, operation: str, nbytes: int, rank: int, size: int) -> None:
        self._operation = operation.split()[0]
        self._all = [contribution(r, nbytes // 8) for r in range(size)]
        self.send = self._all[rank].copy()
        gathered = size if self._operation == "allgatherv" else 1
        self.recv = np.full(nbytes // 8 * gathered, -1.0)
        if self._operation == "broadcast" and rank == 0:
            self.recv[:] = self.send
        self.counts = np.full(size, nbytes // 8, dtype=np.int64)
        self.displs = np.cumsum(self.counts) - self.counts

    def verify(self) -> None:
        expected = {
            "barrier": lambda: self.recv,
            "allreduce": lambda: np.sum(self._all, axis=0),  # of small integers: exact
            "broadcast": lambda: self._all[0],
            "allgatherv": lambda: np.concatenate(self._all),
        }[self._operation]()
        if not np.array_equal(self.recv, expected):
            raise AssertionError(f"{self._operation} of {self.send.nbytes} bytes: wrong result")


def take(world, asked: NjitLoop, options: Options) -> dict:
    """Return the samples of each side that is there; the results are verified."""
    made = {}
    loops = {}
    for name in asked.sides:
        if name == PING_PONG:
            made[name] = PingPong(world.comm)
            loops[name] = made[name].loop
            continue
        if name == NUMBA_MPI and not has_numba_mpi():
            continue
        buffers = made[name] = Buffers(asked.operation, asked.nbytes, world.rank, world.size)
        both = buffers.send, buffers.recv
        if name in BACKENDS:
            comm = world.side(name).comm
            loop = partial(OURS[asked.operation], comm, *both, buffers.counts, buffers.displs)
        else:
            loop = partial(numba_mpi()[asked.operation], *both)
        loops[name] = loop
    found = measure({n: loop_side(loop) for n, loop in loops.items()}, world.slowest, options)
    for one in made.values():
        one.verify()
    return found
