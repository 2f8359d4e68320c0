"""The exact sum beside a plain loop, on a ring of fresh buffers that is larger than the caches."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numba import njit

from bench.plan import Options
from bench.ranks.timing import Side, measure

PLAIN_LOOP = "plain loop"
RING_BYTES = 64 * 2**20
MOST_BUFFERS = 32
KINDS = {
    "similar magnitude": lambda rng, n: rng.standard_normal(n),
    "2^-30 to 2^30": lambda rng, n: np.ldexp(rng.standard_normal(n), rng.integers(-30, 30, n)),
    "2^-900 to 2^900": lambda rng, n: np.ldexp(rng.standard_normal(n), rng.integers(-900, 900, n)),
    "half of them zero": lambda rng, n: rng.standard_normal(n) * (np.arange(n) % 2),
}


@dataclass(frozen=True)
class ExactSum:
    """A measurement of this program: ``count`` values of one kind on each rank."""

    kind: str
    dtype: str
    count: int


@njit(nogil=True)
def plain_sum(values):
    total = 0.0
    for value in values:
        total += value
    return total


@njit(nogil=True)
def exact_sum(comm, values):
    return comm.exact_sum(values)


def take(world, asked: ExactSum, options: Options) -> dict:
    """Return the samples of both sides; the exact sum is compared with math.fsum."""
    rng = np.random.default_rng(asked.count)
    itemsize = np.dtype(asked.dtype).itemsize
    buffers = max(2, min(MOST_BUFFERS, RING_BYTES // (asked.count * itemsize)))
    ring = [KINDS[asked.kind](rng, asked.count).astype(asked.dtype) for _ in range(buffers)]
    with world.communicator("shm") as comm:
        total = exact_sum(comm, ring[0])
        if total != math.fsum(np.concatenate([ring[0]] * world.size)):
            raise AssertionError(
                f"exact_sum of {asked}: {total!r} is not the correctly rounded sum"
            )
        sides = {
            "shm": over_ring(partial(exact_sum, comm), ring),
            PLAIN_LOOP: over_ring(plain_sum, ring),
        }
        return measure(sides, world.slowest, options)


def over_ring(call, ring: list[np.ndarray]) -> Side:
    """Return a side that calls with one buffer of a ring after the other."""
    buffers = itertools.cycle(ring)

    def prepare(count: int):
        mine = list(itertools.islice(buffers, count))

        def block() -> None:
            for values in mine:
                call(values)

        return block

    return Side(prepare, warm=len(ring), most=10_000)
