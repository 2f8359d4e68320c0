"""Bounded-variable primal simplex, which repairs reduced costs of the wrong sign.

The dual simplex ends with every row within its bounds. Its tolerances may leave a reduced cost on
the wrong side of zero, by little at first and by more after a small pivot. Here the variable with
such a reduced cost enters the basis while rows stay within their bounds, so that the work of the
dual simplex is kept.

Ratio test of P. M. J. Harris, Math. Programming 5 (1973) 1.
"""

import numpy as np
from compiled import plain

from simplex.basis import read_column, read_row, rebuild, reprice
from simplex.dual import FEASIBLE, SMALL, compute_basics, exchange
from simplex.ratio import SMALLEST, flip
from simplex.state import AGE, AT_LOWER, AT_UPPER, ROWS, Lp, end_of, is_nonbasic

ROUNDED = 1e-13
"""A reduced cost has no sign if it is at most this number times the size of its terms."""


@plain
def choose_entering(lp: Lp, bland: bool) -> tuple[int, float]:
    """Return the variable with the most wrong reduced cost, and its direction; -1 if none."""
    entering, way, worst = -1, 0.0, 0.0
    for var in range(lp.cost.size + end_of(lp)):
        if not is_nonbasic(lp, var) or lp.lower[var] == lp.upper[var]:
            continue
        rounding = ROUNDED * lp.ratio[var]
        if lp.red[var] < -rounding and lp.status[var] != AT_UPPER:
            ahead = 1.0
        elif lp.red[var] > rounding and lp.status[var] != AT_LOWER:
            ahead = -1.0
        else:
            continue
        if bland:
            return var, ahead
        if abs(lp.red[var]) > worst:
            entering, way, worst = var, ahead, abs(lp.red[var])
    return entering, way


@plain
def room_of(lp: Lp, p: int, entry: float) -> float:
    """Return how far the variable of place `p` may move in the direction of `entry`'s sign."""
    var = lp.basis[p]
    return max(lp.upper[var] - lp.x[var] if entry > 0.0 else lp.x[var] - lp.lower[var], 0.0)


@plain
def choose_leaving(lp: Lp, way: float) -> tuple[int, float, float]:
    """Return the place that stops the variable of `column`, the step to it, and its entry; or -1.

    Among places that stop the variable at nearly the same step, the place with the largest entry is
    taken. The returned entry is relative to the largest entry of the column.
    """
    limit, most = np.inf, 0.0
    for p in range(lp.head[ROWS]):
        most = max(most, abs(lp.column[p]))
    for p in range(lp.head[ROWS]):
        entry = way * lp.column[p]
        if abs(entry) > SMALLEST * most:
            room = room_of(lp, p, entry)
            limit = min(limit, (room + FEASIBLE * (1.0 + abs(lp.x[lp.basis[p]]))) / abs(entry))
    place, step, largest = -1, np.inf, SMALLEST * most
    if limit < np.inf:
        for p in range(lp.head[ROWS]):
            entry = way * lp.column[p]
            if abs(entry) > largest:
                length = room_of(lp, p, entry) / abs(entry)
                if length <= limit:
                    place, step, largest = p, length, abs(entry)
    return place, step, largest / most if most > 0.0 else 0.0


@plain
def mend(lp: Lp) -> None:
    """Pivot until no reduced cost has the wrong sign, or too many steps have been taken."""
    size = lp.head[ROWS] + lp.cost.size
    for steps in range(8 * size):
        reprice(lp)
        var, way = choose_entering(lp, steps > 4 * size)
        if var < 0:
            break
        read_column(lp, var)
        r, step, entry = choose_leaving(lp, way)
        if lp.upper[var] - lp.lower[var] <= step:
            if lp.upper[var] - lp.lower[var] == np.inf:
                break
            flip(lp, var)
        elif entry < SMALL and lp.head[AGE] > 0:
            if not rebuild(lp):
                break
            compute_basics(lp)
        else:
            read_row(lp, r)
            exchange(lp, r, var, AT_UPPER if way * lp.column[r] > 0.0 else AT_LOWER)
    compute_basics(lp)
