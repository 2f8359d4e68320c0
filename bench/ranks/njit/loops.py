"""Loops of calls in @njit: ours, numba-mpi's, and a cache line that two cores pass back and forth.

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
from bench.ranks.sides import Private
from bench.ranks.timing import loop_side, measure
from bench.ranks.work import CALLS, make_arrays, verify

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


def take(world, asked: NjitLoop, options: Options) -> dict:
    """Return the samples of each installed side, with results that were verified."""
    name_of = asked.operation.split()[0]
    operation, new_recv = CALLS.get(name_of, name_of), Private().new_recv
    counts = [asked.nbytes // 8] * world.size
    arrays, loops = {}, {}
    for name in asked.sides:
        if name == PING_PONG:
            ball = PingPong(world.comm)
            loops[name] = ball.loop
            continue
        if name == NUMBA_MPI and not has_numba_mpi():
            continue
        a = arrays[name] = make_arrays(operation, 0, world.rank, counts, np.float64, new_recv)
        if name in BACKENDS:
            comm = world.side(name).comm
            loop = partial(OURS[asked.operation], comm, a.send, a.recv, a.counts, a.displs)
        else:
            loop = partial(numba_mpi()[asked.operation], a.send, a.recv)
        loops[name] = loop
    found = measure({n: loop_side(loop) for n, loop in loops.items()}, world.slowest, options)
    for name, a in arrays.items():
        if operation != "barrier":
            verify(a, in_rank_order=name in BACKENDS)
    if PING_PONG in loops:
        ball.verify()
    return found
