"""Bounded-variable dual simplex on the tableau of `simplex.state.Lp`.

Ratio test with bound flipping (the "long step"): a boxed variable whose dual ratio is passed is
moved to its other bound instead of entering, as long as the row stays infeasible. Ties go to the
largest pivot. A dual step never turns back, because a reduced cost whose sign rounding has turned
is taken for zero when its variable enters. `simplex.primal` mends reduced costs that are left
wrong. After unusually many steps, leaving and entering variables are chosen by least index, which
cannot cycle (Bland). Bounds are then kept a little less tightly, so that rounding cannot cycle
either.

References: A. Koberstein, "The dual simplex method, techniques for a fast and stable
implementation", thesis, Paderborn 2005, ch. 3 and 6; R. G. Bland, Math. Oper. Res. 2 (1977) 103.

The result of a solve depends on nothing but the program and its first basis.
"""

import numpy as np
from compiled import PLAIN
from numba import njit

from simplex.state import AGE, AT_LOWER, AT_UPPER, AT_ZERO, ROWS, SHIFTED, Lp
from simplex.tableau import pivot, rebuild, resting_value

OPTIMAL, INFEASIBLE, NOT_DUAL_FEASIBLE, FAILED = 0, 1, 2, 3
"""Outcomes. `FAILED`: no basis passed the checks."""

FEASIBLE = 1e-11
"""A bound may be passed by this much, times one plus the size of the bound."""
IMPOSSIBLE = 1e-9
"""A row is infeasible only if it misses its bound by more than this, in the same measure."""
SMALLEST = 1e-8
"""Entries of a row below this, times its largest one, do not make a pivot."""
SMALL = 1e-6
"""Before a pivot below this, in the same measure, the tableau is rebuilt."""
TIE = 1e-12
"""A reduced cost within this of zero has no sign: the variable stays where it rests."""
HARRIS = 1e-11
"""Reduced costs may pass zero by this much for the sake of a larger pivot."""
REFRESH = 200
"""Pivots after which the tableau is rebuilt before the next solve."""


@njit(**PLAIN)
def rest_boxed(lp: Lp) -> None:
    """Put each boxed nonbasic variable on the bound that its reduced cost asks for.

    This is done only before the first pivot. Between pivots, rounding may put a cost on the wrong
    side of zero. It would send its variable to a bound from which the next pivots bring it back.
    """
    for j in range(lp.red.size):
        var = lp.nonbasic[j]
        if lp.red[j] > TIE and lp.status[var] == AT_UPPER and lp.lower[var] > -np.inf:
            lp.status[var] = AT_LOWER
        elif lp.red[j] < -TIE and lp.status[var] == AT_LOWER and lp.upper[var] < np.inf:
            lp.status[var] = AT_UPPER


@njit(**PLAIN)
def compute_basics(lp: Lp) -> None:
    """Compute the values of all variables from the resting values of the nonbasic ones."""
    n = lp.red.size
    for j in range(n):
        lp.xn[j] = resting_value(lp, lp.nonbasic[j])
    for i in range(lp.head[ROWS]):
        total = 0.0
        for j in range(n):
            total += lp.tab[i, j] * lp.xn[j]
        lp.xb[i] = total


@njit(**PLAIN)
def choose_row(lp: Lp, bland: bool) -> tuple[int, float]:
    """Return the leaving row, and its distance to the bound that it misses (negative: above)."""
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
def largest_entry(lp: Lp, r: int) -> float:
    """Return the largest absolute entry of row `r`, the measure of the row's rounding errors."""
    largest = 0.0
    for j in range(lp.red.size):
        largest = max(largest, abs(lp.tab[r, j]))
    return largest


@njit(**PLAIN)
def list_candidates(lp: Lp, r: int, sign: float) -> int:
    """Fill `mark` and `ratio` with columns that can move row `r` by `sign`; return how many."""
    count, least = 0, SMALLEST * largest_entry(lp, r)
    for j in range(lp.red.size):
        entry = sign * lp.tab[r, j]
        if abs(entry) <= least:
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
    """Return the candidate of least ratio; of near equals the largest entry, or least index.

    Ratios are near equal if every reduced cost stays within `HARRIS` of its sign (P. M. J. Harris,
    Math. Programming 5 (1973) 1). That avoids entries too small to divide by.
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

    If none is left, row `r` misses its bound even with every variable on the bound that helps most.
    The rest of the miss is then returned in place of the ratio. If the last candidate leaves a miss
    of no more than rounding, it enters.
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
    """Bring row `r` exactly to the bound that it misses (`AT_...`); column `c` enters."""
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
def shift(lp: Lp, c: int) -> None:
    """Take the reduced cost of the entering column `c` for zero, if its sign is wrong.

    With the wrong sign the dual step would go back. Divided by a small pivot, it would be a long
    step on which all reduced costs lose their signs. `reprice` takes the shift back.
    """
    status = lp.status[lp.nonbasic[c]]
    d = lp.red[c]
    if (d < 0.0 and status == AT_LOWER) or (d > 0.0 and status == AT_UPPER):
        lp.red[c] = 0.0
        lp.head[SHIFTED] = 1


@njit(**PLAIN)
def reprice(lp: Lp) -> None:
    """Compute the reduced costs from the original costs, and in `ratio` the size of their terms."""
    n = lp.cost.size
    for j in range(n):
        lp.red[j] = lp.cost[lp.nonbasic[j]] if lp.nonbasic[j] < n else 0.0
        lp.ratio[j] = abs(lp.red[j])
    for i in range(lp.head[ROWS]):
        f = lp.cost[lp.basis[i]] if lp.basis[i] < n else 0.0
        if f != 0.0:
            for j in range(n):
                lp.red[j] += f * lp.tab[i, j]
                lp.ratio[j] += abs(f * lp.tab[i, j])
    lp.head[SHIFTED] = 0


@njit(**PLAIN)
def iterate(lp: Lp, patience: int) -> int:
    """Pivot until all rows keep their bounds, from reduced costs of the right signs.

    After `patience` times as many steps as there are variables, pivots are chosen by least index.
    """
    outcome = pivot_until_feasible(lp, patience)
    if lp.head[SHIFTED] == 1:
        reprice(lp)
    return outcome


@njit(**PLAIN)
def pivot_until_feasible(lp: Lp, patience: int) -> int:
    """Do the steps of `iterate`; some reduced costs may be shifted afterwards."""
    size = lp.head[ROWS] + lp.red.size
    rest_boxed(lp)
    compute_basics(lp)
    fresh = True
    for step in range(100 * size + 1000):
        bland = step > patience * size
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
        if lp.head[AGE] > 0 and abs(lp.tab[r, c]) < SMALL * largest_entry(lp, r):
            if not rebuild(lp):
                return FAILED
            compute_basics(lp)
            continue
        shift(lp, c)
        exchange(lp, r, c, AT_LOWER if miss > 0.0 else AT_UPPER)
    compute_basics(lp)
    return FAILED
