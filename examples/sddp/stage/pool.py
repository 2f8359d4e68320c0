"""The cut pool: every cut of every stage, the same on every rank.

Cut c of stage t says  theta >= intercept + slope . v'  where theta is the expected cost of the
stages after t. Coefficients are stored one row per coefficient, because the search for violated
cuts runs over the cuts of a stage.
"""

import hashlib
from typing import NamedTuple

import numpy as np
from compiled import PLAIN
from numba import njit

from stage.problem import Problem
from stage.units import Units

BLOCK = 128
"""Cuts evaluated together: the values of a block stay in the first-level cache."""


class Pool(NamedTuple):
    """Cuts in scaled units; `coef[t, h, c]` is a slope for h < H and the intercept for h = H."""

    coef: np.ndarray  # (T, H + 1, capacity)
    count: np.ndarray  # (T,)
    value: np.ndarray  # (BLOCK,) work


def new_pool(problem: Problem, capacity: int) -> Pool:
    """Return an empty pool with room for `capacity` cuts a stage."""
    stages, hydros = problem.cost.shape[0], problem.start.size
    return Pool(
        coef=np.zeros((stages, hydros + 1, capacity)),
        count=np.zeros(stages, np.int64),
        value=np.zeros(BLOCK),
    )


def with_room(pool: Pool, extra: int) -> Pool:
    """Return `pool`, or a larger copy of it, with room for `extra` more cuts in every stage."""
    stages, width, capacity = pool.coef.shape
    needed = int(pool.count.max()) + extra
    if needed <= capacity:
        return pool
    coef = np.zeros((stages, width, max(needed, 2 * capacity)))
    coef[:, :, :capacity] = pool.coef
    return pool._replace(coef=coef)


@njit(**PLAIN)
def highest_cut(pool: Pool, t: int, point: np.ndarray, above: float) -> tuple[int, float]:
    """Return the highest cut at `point` and its value, if above `above`; else (-1, above)."""
    coef, value = pool.coef[t], pool.value
    hydros = coef.shape[0] - 1
    best = -1
    for begin in range(0, pool.count[t], BLOCK):
        size = min(BLOCK, pool.count[t] - begin)
        for c in range(size):
            value[c] = coef[hydros, begin + c]
        for h in range(hydros):
            v = point[h]
            for c in range(size):
                value[c] += coef[h, begin + c] * v
        # An integer "or" can be vectorised, a floating-point maximum cannot.
        found = 0
        for c in range(size):
            found |= 1 if value[c] > above else 0
        if found:
            for c in range(size):
                if value[c] > above:
                    best, above = begin + c, value[c]
    return best, above


@njit(**PLAIN)
def append_cut(pool: Pool, t: int, cut: np.ndarray) -> None:
    """Append `cut` (slopes, then intercept) to the cuts of stage `t`; there must be room."""
    c = pool.count[t]
    for h in range(pool.coef.shape[1]):
        pool.coef[t, h, c] = cut[h]
    pool.count[t] = c + 1


def pool_digest(pool: Pool, units: Units) -> str:
    """Return the SHA-256 of all cuts: stage by stage, in order, (intercept, slopes) as float64."""
    digest = hashlib.sha256()
    for t, count in enumerate(pool.count):
        slopes = pool.coef[t, :-1, :count].T * (units.money / units.water)
        rows = np.column_stack([pool.coef[t, -1, :count] * units.money, slopes])
        digest.update(np.ascontiguousarray(rows, "<f8").tobytes())
    return digest.hexdigest()
