"""The cut pool: every cut of every stage.

Cut c of stage t says  theta >= intercept + slope . v'  where theta is the expected cost of the
stages after t. Coefficients are stored one row per coefficient, because the search for violated
cuts runs over the cuts of a stage.
"""

import hashlib
from typing import NamedTuple

import numpy as np
from compiled import plain

from stage.units import Units

BLOCK = 128
"""So many cuts are evaluated together: their values stay in the first-level cache."""

HASHED = 4096
"""So many cuts are hashed together, so that no second copy of the pool is made."""


class Pool(NamedTuple):
    """Cuts in scaled units: `coef[t, h, c]` is a slope if h < H, and the intercept if h = H."""

    coef: np.ndarray  # (T, H + 1, capacity) in shared memory, one for all ranks of the node
    count: np.ndarray  # (T,) of each rank, equal on all
    value: np.ndarray  # (BLOCK,) work space of each rank
    writer: int  # this rank's number among the ranks of its node
    writers: int  # the number of ranks of its node


@plain
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
        # The compiler can vectorise an integer "or", but not a floating-point maximum.
        found = 0
        for c in range(size):
            found |= 1 if value[c] > above else 0
        if found:
            for c in range(size):
                if value[c] > above:
                    best, above = begin + c, value[c]
    return best, above


@plain
def write_cut(pool: Pool, t: int, c: int, cut: np.ndarray) -> None:
    """Write `cut` (slopes, then intercept) as cut `c` of stage `t`; there must be room."""
    for h in range(pool.coef.shape[1]):
        pool.coef[t, h, c] = cut[h]


def pool_digest(pool: Pool, units: Units) -> str:
    """Return the SHA-256 of all cuts: stage by stage, in order, (intercept, slopes) as float64."""
    digest = hashlib.sha256()
    for t, count in enumerate(pool.count):
        for begin in range(0, int(count), HASHED):
            coef = pool.coef[t, :, begin : min(begin + HASHED, int(count))]
            slopes = coef[:-1].T * (units.money / units.water)
            rows = np.column_stack([coef[-1] * units.money, slopes])
            digest.update(np.ascontiguousarray(rows, "<f8").tobytes())
    return digest.hexdigest()
