"""Trial points of a stage; a cut that is the highest at none of these points is deleted.

This selection is level 1 of V. de Matos, A. Philpott, E. Finardi, J. Comput. Appl. Math. 290 (2015)
196. Of equal cuts the first counts (V. Guigues, Eur. J. Oper. Res. 258 (2017) 47: limited memory
level 1). Beside each point the number and the value of its highest cut are kept, so that each cut
is evaluated only once at a point.
"""

from typing import NamedTuple

import numpy as np
from compiled import plain

from stage.pool import BLOCK, Pool, highest_cut

FIELDS = 2
"""Rows of `Points.at` below the coordinates: the value of the highest cut, and its number."""


class Points(NamedTuple):
    """The latest points of the training at which the cuts of each stage are compared.

    Each point is a column: H volumes, the value of its highest cut, and the number of this cut.
    """

    at: np.ndarray  # (T, H + FIELDS, room) in shared memory, one for all ranks of the node
    # (T,) of each rank, equal on all: the number of points so far, including forgotten points
    seen: np.ndarray
    kept: np.ndarray  # (T,) in shared memory: how many cuts the last selection has left
    place: np.ndarray  # (capacity of the pool,) work of each rank: a cut's new number, or -1


@plain
def remember(points: Points, pool: Pool, t: int, slot: int, point: np.ndarray) -> None:
    """Write `point` with its highest cut to column `slot`."""
    at, hydros = points.at[t], point.size
    for h in range(hydros):
        at[h, slot] = point[h]
    best, value = highest_cut(pool, t, point, -np.inf)
    at[hydros, slot], at[hydros + 1, slot] = value, best


@plain
def raise_highest(points: Points, pool: Pool, t: int, count: int, first: int) -> None:
    """Compare cuts from `first` on with the highest cuts at the `count` points of stage `t`.

    Values are rounded as `highest_cut` rounds them.
    """
    at, coef, value = points.at[t], pool.coef[t], pool.value
    hydros = coef.shape[0] - 1
    for begin in range(0, count, BLOCK):
        size = min(BLOCK, count - begin)
        for c in range(first, pool.count[t]):
            for p in range(size):
                value[p] = coef[hydros, c]
            for h in range(hydros):
                slope = coef[h, c]
                for p in range(size):
                    value[p] += slope * at[h, begin + p]
            for p in range(size):
                if value[p] > at[hydros, begin + p]:
                    at[hydros, begin + p], at[hydros + 1, begin + p] = value[p], c


@plain
def delete_others(points: Points, pool: Pool, t: int, count: int) -> None:
    """Delete the cuts of stage `t` that are the highest at none of its `count` points.

    The other cuts move together, in their order; their number is written to `points.kept`.
    """
    at, coef, place, cuts = points.at[t], pool.coef[t], points.place, pool.count[t]
    highest, kept = at[coef.shape[0]], 0
    if cuts == 0:
        return  # no point has a highest cut yet
    place[:cuts] = -1
    for p in range(count):
        place[int(highest[p])] = 0
    for c in range(cuts):
        if place[c] == 0:
            place[c] = kept
            kept += 1
    for h in range(coef.shape[0]):
        for c in range(cuts):
            if place[c] >= 0:
                coef[h, place[c]] = coef[h, c]
    for p in range(count):
        highest[p] = place[int(highest[p])]
    points.kept[t] = kept
