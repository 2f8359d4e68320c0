"""Bounded-variable primal simplex on the tableau, which mends reduced costs of the wrong sign.

The dual simplex ends with every row within its bounds. Its tolerances may leave a reduced cost on
the wrong side of zero, by little at first and by more after a small pivot. Such a variable enters
here while rows stay within their bounds, so that the work of the dual simplex is kept.

Ratio test of P. M. J. Harris, Math. Programming 5 (1973) 1.
"""

import numpy as np
from compiled import PLAIN
from numba import njit

from simplex.dual import (
    FEASIBLE,
    SMALL,
    SMALLEST,
    compute_basics,
    exchange,
    flip,
    largest_entry,
    reprice,
)
from simplex.state import AGE, AT_LOWER, AT_UPPER, ROWS, Lp
from simplex.tableau import rebuild

ROUNDED = 1e-13
"""A reduced cost within this of zero, times the size of its terms, has no sign."""


@njit(**PLAIN)
def choose_entering(lp: Lp, bland: bool) -> tuple[int, float]:
    """Return the column of the most wrong reduced cost and its direction; -1 if none is wrong."""
    column, way, worst = -1, 0.0, 0.0
    for j in range(lp.red.size):
        var = lp.nonbasic[j]
        if lp.lower[var] == lp.upper[var]:
            continue
        rounding = ROUNDED * lp.ratio[j]
        if lp.red[j] < -rounding and lp.status[var] != AT_UPPER:
            ahead = 1.0
        elif lp.red[j] > rounding and lp.status[var] != AT_LOWER:
            ahead = -1.0
        else:
            continue
        if bland:
            if column < 0 or var < lp.nonbasic[column]:
                column, way = j, ahead
        elif abs(lp.red[j]) > worst:
            column, way, worst = j, ahead, abs(lp.red[j])
    return column, way


@njit(**PLAIN)
def room_of(lp: Lp, i: int, entry: float) -> float:
    """Return how far row `i` may go if the entering variable moves it by `entry`."""
    var = lp.basis[i]
    return max(lp.upper[var] - lp.xb[i] if entry > 0.0 else lp.xb[i] - lp.lower[var], 0.0)


@njit(**PLAIN)
def choose_leaving(lp: Lp, c: int, way: float) -> tuple[int, float, float]:
    """Return the row that stops column `c`, the step to it, and its entry; -1 if no row does.

    Of rows that stop it at nearly the same step, the row with the largest entry is taken. Entries
    are relative to the largest of their row.
    """
    limit = np.inf
    for i in range(lp.head[ROWS]):
        entry = way * lp.tab[i, c]
        if abs(entry) > SMALLEST * largest_entry(lp, i):
            room = room_of(lp, i, entry)
            limit = min(limit, (room + FEASIBLE * (1.0 + abs(lp.xb[i]))) / abs(entry))
    row, step, largest = -1, np.inf, SMALLEST
    if limit < np.inf:
        for i in range(lp.head[ROWS]):
            entry = way * lp.tab[i, c]
            if abs(entry) > largest * largest_entry(lp, i):
                length = room_of(lp, i, entry) / abs(entry)
                if length <= limit:
                    row, step, largest = i, length, abs(entry) / largest_entry(lp, i)
    return row, step, largest


@njit(**PLAIN)
def mend(lp: Lp) -> None:
    """Pivot until no reduced cost has the wrong sign, or too many steps have been taken."""
    size = lp.head[ROWS] + lp.red.size
    for steps in range(8 * size):
        reprice(lp)
        c, way = choose_entering(lp, steps > 4 * size)
        if c < 0:
            break
        r, step, entry = choose_leaving(lp, c, way)
        var = lp.nonbasic[c]
        if lp.upper[var] - lp.lower[var] <= step:
            if lp.upper[var] - lp.lower[var] == np.inf:
                break
            flip(lp, c)
        elif entry < SMALL and lp.head[AGE] > 0:
            if not rebuild(lp):
                break
            compute_basics(lp)
        else:
            exchange(lp, r, c, AT_UPPER if way * lp.tab[r, c] > 0.0 else AT_LOWER)
    compute_basics(lp)
