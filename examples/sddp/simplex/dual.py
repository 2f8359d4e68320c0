"""Bounded-variable dual simplex on the basis of `simplex.state.Lp`.

The leaving variable is that of the steepest edge: among all rows, it has the largest miss of a
bound, squared and divided by the squared norm of the row of the inverse. `simplex.ratio` finds the
entering variable. A dual step never turns back: if rounding has turned the sign of a reduced cost,
this cost is taken for zero when its variable enters. `simplex.primal` repairs reduced costs that
stay wrong.
After unusually many steps, leaving and entering variables are chosen by least index, which cannot
cycle (Bland). Bounds are then kept a little less tightly, so that rounding cannot cycle either.

References: A. Koberstein, "The dual simplex method, techniques for a fast and stable
implementation", thesis, Paderborn 2005, ch. 3 and 6; J. J. Forrest, D. Goldfarb, Math. Programming
57 (1992) 341; R. G. Bland, Math. Oper. Res. 2 (1977) 103.

The result of a solve depends on nothing but the program and its first basis.
"""

import numpy as np
from compiled import plain

from simplex.basis import (
    add_line,
    clear_column,
    read_column,
    read_row,
    rebuild,
    replace,
    reprice,
    resting_value,
)
from simplex.ratio import IMPOSSIBLE, SMALLEST, choose_column, largest_entry
from simplex.state import (
    AGE,
    AT_LOWER,
    AT_UPPER,
    PIVOTS,
    ROWS,
    SHIFTED,
    Lp,
    end_of,
    has_row,
    is_nonbasic,
    rows_of,
)

OPTIMAL, INFEASIBLE, NOT_DUAL_FEASIBLE, FAILED = 0, 1, 2, 3
"""Outcomes. `FAILED`: no basis passed the checks."""

FEASIBLE = 1e-11
"""A bound may be passed by this much, times one plus the size of the bound."""
SMALL = 1e-6
"""Before a pivot below this number times the largest entry of its row, the inverse is rebuilt."""
TIE = 1e-12
"""A reduced cost of at most this size has no sign: the variable stays where it rests."""
REFRESH = 200
"""After so many pivots, the inverse is rebuilt before the next solve."""


@plain
def rest_boxed(lp: Lp) -> None:
    """Put each boxed nonbasic variable on the bound that its reduced cost asks for.

    This is done only before the first pivot. Between pivots, rounding may put a reduced cost on the
    wrong side of zero. Such a cost would send its variable to a bound from which the next pivots
    bring the variable back.
    """
    for var in range(lp.cost.size + end_of(lp)):
        if not is_nonbasic(lp, var):
            continue
        if lp.red[var] > TIE and lp.status[var] == AT_UPPER and lp.lower[var] > -np.inf:
            lp.status[var] = AT_LOWER
        elif lp.red[var] < -TIE and lp.status[var] == AT_LOWER and lp.upper[var] < np.inf:
            lp.status[var] = AT_UPPER


@plain
def compute_basics(lp: Lp) -> None:
    """Compute the values of all variables from those at which nonbasic variables rest."""
    n, m = lp.cost.size, rows_of(lp)
    for j in range(n):
        if is_nonbasic(lp, j):
            lp.x[j] = resting_value(lp, j)
    clear_column(lp)
    first, index, value = lp.by_row
    for i in range(end_of(lp)):
        if not has_row(lp, i):
            continue
        total = 0.0
        if i < m:
            for e in range(first[i], first[i + 1]):
                if lp.place[index[e]] < 0:
                    total += value[e] * lp.x[index[e]]
        else:
            for j in range(lp.cut.shape[1]):
                if lp.place[j] < 0:
                    total += lp.cut[i - m, j] * lp.x[j]
        if lp.place[n + i] < 0:
            lp.x[n + i] = resting_value(lp, n + i)
            total -= lp.x[n + i]
        if total != 0.0:
            add_line(lp, i, total, lp.column)
    for p in range(lp.head[ROWS]):
        lp.x[lp.basis[p]] = lp.column[p]


@plain
def choose_row(lp: Lp, bland: bool) -> tuple[int, float]:
    """Return the leaving place, and the missed bound minus its value: negative above a bound."""
    row, miss, largest = -1, 0.0, 0.0
    tolerance = IMPOSSIBLE if bland else FEASIBLE
    for p in range(lp.head[ROWS]):
        var = lp.basis[p]
        value = lp.x[var]
        low, high = lp.lower[var], lp.upper[var]
        if value < low - tolerance * (1.0 + abs(low)):
            gap = low - value
        elif value > high + tolerance * (1.0 + abs(high)):
            gap = high - value
        else:
            continue
        if bland:
            if row < 0 or var < lp.basis[row]:
                row, miss = p, gap
        elif gap * gap > largest * lp.weight[p]:
            row, miss, largest = p, gap, gap * gap / lp.weight[p]
    return row, miss


@plain
def exchange(lp: Lp, r: int, var: int, bound: int) -> None:
    """Bring place `r` exactly to the bound (`AT_...`) that it misses; `var` enters the basis.

    `entry` and `column` must hold row `r` and the column of `var`.
    """
    leaving = lp.basis[r]
    lp.status[leaving] = bound
    target = resting_value(lp, leaving)
    step = (target - lp.x[leaving]) / lp.column[r]
    for p in range(lp.head[ROWS]):
        lp.x[lp.basis[p]] += lp.column[p] * step
    lp.x[var] += step
    lp.x[leaving] = target
    factor = lp.red[var] / lp.column[r]
    if factor != 0.0:
        for j in range(lp.cost.size + end_of(lp)):
            if is_nonbasic(lp, j):
                lp.red[j] -= factor * lp.entry[j]
    lp.red[var] = 0.0
    lp.red[leaving] = factor
    replace(lp, r, var)
    lp.head[PIVOTS] += 1


@plain
def shift(lp: Lp, var: int) -> None:
    """Treat the reduced cost of the entering `var` as zero, if its sign is wrong.

    With the wrong sign, the dual step would go back. If the pivot were small too, this step would
    be so long that all reduced costs would lose their signs. `reprice` undoes the shift.
    """
    d = lp.red[var]
    if (d < 0.0 and lp.status[var] == AT_LOWER) or (d > 0.0 and lp.status[var] == AT_UPPER):
        lp.red[var] = 0.0
        lp.head[SHIFTED] = 1


@plain
def iterate(lp: Lp, patience: int) -> int:
    """Pivot until all rows keep their bounds; at the start, all reduced costs have right signs.

    After `patience` times as many steps as there are variables, pivots are chosen by least index.
    """
    outcome = pivot_until_feasible(lp, patience)
    if lp.head[SHIFTED] == 1:
        reprice(lp)
    return outcome


@plain
def pivot_until_feasible(lp: Lp, patience: int) -> int:
    """Do the steps of `iterate`; after that, some reduced costs may be shifted."""
    size = lp.head[ROWS] + lp.cost.size
    rest_boxed(lp)
    compute_basics(lp)
    for step in range(100 * size + 1000):
        bland = step > patience * size
        r, miss = choose_row(lp, bland)
        if r < 0:
            return OPTIMAL
        read_row(lp, r)
        largest = largest_entry(lp)
        var, ratio = choose_column(lp, r, miss, largest, bland)
        if var < 0:
            bound = lp.lower[lp.basis[r]] if miss > 0.0 else lp.upper[lp.basis[r]]
            if ratio > IMPOSSIBLE * (1.0 + abs(bound)):
                return INFEASIBLE
            # No variable can reduce the miss further, and it is only rounding: take it for zero.
            lp.x[lp.basis[r]] = bound
            continue
        read_column(lp, var)
        if lp.head[AGE] > 0 and is_unsure(lp, r, var, largest):
            if not rebuild(lp):
                return FAILED
            compute_basics(lp)
            continue
        shift(lp, var)
        exchange(lp, r, var, AT_LOWER if miss > 0.0 else AT_UPPER)
    compute_basics(lp)
    return FAILED


@plain
def is_unsure(lp: Lp, r: int, var: int, largest: float) -> bool:
    """Tell whether a pivot is small in its row, or has different values in row and column."""
    by_row, by_column = lp.entry[var], lp.column[r]
    if abs(by_row - by_column) > SMALLEST * (abs(by_row) + abs(by_column)):
        return True
    return abs(by_column) < SMALL * largest
