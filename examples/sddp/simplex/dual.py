"""Bounded-variable dual simplex on the tableau of `simplex.state.Lp`.

Ratio test with bound flipping (the "long step"): a boxed variable whose dual ratio is passed is
moved to its other bound instead of entering, as long as the row stays infeasible. Ties go to the
largest pivot. A solve that takes unusually many steps goes on with leaving and entering variable
chosen by least index, which cannot cycle (Bland), and with bounds kept a little less tightly, so
that rounding cannot keep it going either.

References: A. Koberstein, "The dual simplex method, techniques for a fast and stable
implementation", thesis, Paderborn 2005, ch. 3 and 6; R. G. Bland, Math. Oper. Res. 2 (1977) 103.

What a solve returns depends on nothing but the program and the basis it starts from.
"""

import numpy as np
from compiled import PLAIN
from numba import njit

from simplex.state import AGE, AT_LOWER, AT_UPPER, AT_ZERO, ROWS, Lp
from simplex.tableau import pivot, rebuild, resting_value

OPTIMAL, INFEASIBLE, NOT_DUAL_FEASIBLE, FAILED = 0, 1, 2, 3
"""Outcomes. `FAILED`: no basis passed the checks; has not been seen on scaled data."""

FEASIBLE = 1e-11
"""A bound may be passed by this much, times one plus the size of the bound."""
IMPOSSIBLE = 1e-9
"""A row is infeasible only if it misses its bound by more than this, in the same measure."""
ENOUGH = 1e-7
"""What is still missed when the steps are used up; the dual solution is feasible throughout."""
FROM_PYTHON = 1e-8
"""Entries of a row below this do not make a pivot."""
TIE = 1e-12
"""A reduced cost within this of zero has no sign: the variable stays where it rests."""
HARRIS = 1e-11
"""Reduced costs may pass zero by this much for the sake of a larger pivot."""
REFRESH = 200
"""Pivots after which the tableau is rebuilt before the next solve."""


@njit(**PLAIN)
def compute_basics(lp: Lp) -> None:
    """Rest each boxed variable where its reduced cost asks, and compute all values from that."""
    n = lp.red.size
    for j in range(n):
        var = lp.nonbasic[j]
        if lp.red[j] > TIE and lp.status[var] == AT_UPPER and lp.lower[var] > -np.inf:
            lp.status[var] = AT_LOWER
        elif lp.red[j] < -TIE and lp.status[var] == AT_LOWER and lp.upper[var] < np.inf:
            lp.status[var] = AT_UPPER
        lp.xn[j] = resting_value(lp, var)
    for i in range(lp.head[ROWS]):
        total = 0.0
        for j in range(n):
            total += lp.tab[i, j] * lp.xn[j]
        lp.xb[i] = total


@njit(**PLAIN)
def choose_row(lp: Lp, bland: bool) -> tuple[int, float]:
    """Return the row to leave and how far it misses its bound (negative: it is above)."""
    row, miss, largest = -1, 0.0, 0.0
    tolerance = IMPOSSIBLE if bland else FEASIBLE
    for i in range(lp.head[ROWS]):
        var = lp.basis[i]
        value = lp.xb[i]
        low, high = lp.lower[var], lp.upper[var]
        if value < low - tolerance * (1.0 + abs(low)):
            gap = low - value
        elif value > high + tolerance * (1.0 + abs(high)):
            gap = high - value
        else:
            continue
        if bland:
            if row < 0 or var < lp.basis[row]:
                row, miss = i, gap
        elif abs(gap) > largest:
            row, miss, largest = i, gap, abs(gap)
    return row, miss


@njit(**PLAIN)
def list_candidates(lp: Lp, r: int, sign: float) -> int:
    """Fill `mark` and `ratio` with columns that can move row `r` by `sign`; return how many."""
    count = 0
    for j in range(lp.red.size):
        entry = sign * lp.tab[r, j]
        if abs(entry) <= FROM_PYTHON:
            continue
        var = lp.nonbasic[j]
        if lp.lower[var] == lp.upper[var]:
            continue
        status = lp.status[var]
        if status == AT_LOWER and entry > 0.0:
            slope = max(lp.red[j], 0.0)
        elif status == AT_UPPER and entry < 0.0:
            slope = max(-lp.red[j], 0.0)
        elif status == AT_ZERO:
            slope = abs(lp.red[j])
        else:
            continue
        lp.mark[count] = j
        lp.ratio[count] = slope / abs(entry)
        count += 1
    return count


@njit(**PLAIN)
def flip(lp: Lp, c: int) -> None:
    """Move the boxed nonbasic variable of column `c` to its other bound."""
    var = lp.nonbasic[c]
    lp.status[var] = AT_UPPER if lp.status[var] == AT_LOWER else AT_LOWER
    target = resting_value(lp, var)
    step = target - lp.xn[c]
    lp.xn[c] = target
    for i in range(lp.head[ROWS]):
        lp.xb[i] += lp.tab[i, c] * step


@njit(**PLAIN)
def pick(lp: Lp, r: int, count: int, bland: bool) -> int:
    """Return which candidate has the least ratio; of near equals the largest entry, or index.

    Near equal is what keeps every reduced cost within `HARRIS` of its sign (P. M. J. Harris,
    Math. Programming 5 (1973) 1): entries too small to divide by are avoided that way.
    """
    best = 0
    limit = np.inf
    for p in range(count):
        if lp.ratio[p] < lp.ratio[best]:
            best = p
        limit = min(limit, lp.ratio[p] + HARRIS / abs(lp.tab[r, lp.mark[p]]))
    if bland:
        limit = lp.ratio[best]
    for p in range(count):
        if lp.ratio[p] <= limit:
            j, k = lp.mark[p], lp.mark[best]
            if bland:
                if lp.nonbasic[j] < lp.nonbasic[k]:
                    best = p
            elif abs(lp.tab[r, j]) > abs(lp.tab[r, k]):
                best = p
    return best


@njit(**PLAIN)
def choose_column(lp: Lp, r: int, miss: float, bland: bool) -> tuple[int, float]:
    """Return the entering column and its ratio, flipping bounds on the way; -1 if none is left.

    None left means: with every variable on the bound that helps most, row `r` still misses, by
    what is returned instead of the ratio. If that is no more than rounding, the last one enters.
    """
    bound = lp.lower[lp.basis[r]] if miss > 0.0 else lp.upper[lp.basis[r]]
    rounding = IMPOSSIBLE * (1.0 + abs(bound))
    count = list_candidates(lp, r, 1.0 if miss > 0.0 else -1.0)
    slope = abs(miss)
    while count > 0:
        p = pick(lp, r, count, bland)
        c = lp.mark[p]
        var = lp.nonbasic[c]
        reach = abs(lp.tab[r, c]) * (lp.upper[var] - lp.lower[var])
        if slope <= reach or bland or (count == 1 and slope - reach <= rounding):
            return c, lp.ratio[p]
        slope -= reach
        flip(lp, c)
        count -= 1
        lp.mark[p], lp.ratio[p] = lp.mark[count], lp.ratio[count]
    return -1, slope


@njit(**PLAIN)
def exchange(lp: Lp, r: int, c: int, bound: int) -> None:
    """Bring row `r` exactly to the bound it misses (`AT_...`) by letting column `c` enter."""
    leaving = lp.basis[r]
    lp.status[leaving] = bound
    target = resting_value(lp, leaving)
    step = (target - lp.xb[r]) / lp.tab[r, c]
    for i in range(lp.head[ROWS]):
        lp.xb[i] += lp.tab[i, c] * step
    lp.xb[r] = lp.xn[c] + step
    lp.xn[c] = target
    pivot(lp, r, c)


@njit(**PLAIN)
def iterate(lp: Lp) -> int:
    """Pivot until all rows keep their bounds; the reduced costs have the right signs throughout."""
    size = lp.head[ROWS] + lp.red.size
    compute_basics(lp)
    fresh = True
    for step in range(100 * size + 1000):
        bland = step > 4 * size
        r, miss = choose_row(lp, bland)
        if r < 0:
            if fresh:
                return OPTIMAL
            compute_basics(lp)
            fresh = True
            continue
        c, ratio = choose_column(lp, r, miss, bland)
        if c < 0:
            bound = lp.lower[lp.basis[r]] if miss > 0.0 else lp.upper[lp.basis[r]]
            if ratio > IMPOSSIBLE * (1.0 + abs(bound)):
                return INFEASIBLE
            # All help is used up and the rest is rounding: take the bound as met.
            lp.xb[r] = bound
            continue
        fresh = False
        if abs(lp.tab[r, c]) < 1e-6 and lp.head[AGE] > 0:
            if not rebuild(lp):
                return FAILED
            compute_basics(lp)
            continue
        exchange(lp, r, c, AT_LOWER if miss > 0.0 else AT_UPPER)
    compute_basics(lp)
    _, miss = choose_row(lp, False)
    return OPTIMAL if abs(miss) <= ENOUGH else FAILED
