"""The ratio test of the dual simplex: which variable enters, and which change their bound before.

If the dual ratio of a boxed variable is passed, the variable moves to its other bound and does not
enter, as long as the row stays infeasible (bound flipping, the "long step"). Among ratios that are
nearly equal, that of the largest entry is taken.

References: A. Koberstein, "The dual simplex method, techniques for a fast and stable
implementation", thesis, Paderborn 2005, ch. 3 and 6; P. M. J. Harris, Math. Programming 5 (1973) 1.
"""

import numpy as np
from compiled import plain

from simplex.basis import add_column, clear_column, resting_value, size_of_column
from simplex.state import (
    AT_LOWER,
    AT_UPPER,
    AT_ZERO,
    ROWS,
    Lp,
    end_of,
    has_row,
    is_nonbasic,
)

IMPOSSIBLE = 1e-9
"""A row is infeasible only if it misses its bound by this times 1 + the size of the bound."""
SMALLEST = 1e-8
"""An entry below this number times the largest entry of its row is no pivot."""
NOISE = 1e-11
"""If no larger entry is left, an entry counts if it exceeds `NOISE` times the size of the terms of
its sum. Smaller entries are rounding errors."""
HARRIS = 1e-11
"""Reduced costs may pass zero by this much for the sake of a larger pivot."""


@plain
def largest_entry(lp: Lp) -> float:
    """Return the largest absolute value in `entry`, beside which small entries are no pivots."""
    largest = 0.0
    for var in range(lp.cost.size + end_of(lp)):
        if is_nonbasic(lp, var):
            largest = max(largest, abs(lp.entry[var]))
    return largest


@plain
def list_candidates(lp: Lp, sign: float, least: float) -> int:
    """Fill `mark` and `ratio` with the variables that move the row by `sign`; return how many."""
    count = 0
    for var in range(lp.cost.size + end_of(lp)):
        if not is_nonbasic(lp, var):
            continue
        entry = sign * lp.entry[var]
        if abs(entry) <= least or lp.lower[var] == lp.upper[var]:
            continue
        status = lp.status[var]
        if status == AT_LOWER and entry > 0.0:
            slope = max(lp.red[var], 0.0)
        elif status == AT_UPPER and entry < 0.0:
            slope = max(-lp.red[var], 0.0)
        elif status == AT_ZERO:
            slope = abs(lp.red[var])
        else:
            continue
        lp.mark[count] = var
        lp.ratio[count] = slope / abs(entry)
        count += 1
    return count


@plain
def drop_noise(lp: Lp, r: int, count: int) -> int:
    """Drop candidates with entries in row `r` that are noise; return how many of `count` stay.

    An entry is the sum of the numbers in a column of the program, each times a factor of its row.
    If a column has only small numbers, its entry is small too, without being a rounding error.
    """
    factor, kept = 0.0, 0
    for i in range(end_of(lp)):
        if has_row(lp, i):
            factor = max(factor, abs(lp.inverse[i, r]))
    for p in range(count):
        var = lp.mark[p]
        size = size_of_column(lp, var) if var < lp.cost.size else 1.0
        if abs(lp.entry[var]) > NOISE * factor * size:
            lp.mark[kept], lp.ratio[kept] = var, lp.ratio[p]
            kept += 1
    return kept


@plain
def flip(lp: Lp, var: int) -> None:
    """Move the boxed nonbasic `var` to its other bound."""
    lp.status[var] = AT_UPPER if lp.status[var] == AT_LOWER else AT_LOWER
    target = resting_value(lp, var)
    step = target - lp.x[var]
    lp.x[var] = target
    clear_column(lp)
    add_column(lp, var, step, lp.column)
    for p in range(lp.head[ROWS]):
        lp.x[lp.basis[p]] += lp.column[p]


@plain
def pick(lp: Lp, count: int, bland: bool) -> int:
    """Return the candidate with the least ratio; among near equals by entry, or by least index.

    Ratios are near equal if every reduced cost stays within `HARRIS` of its sign (P. M. J. Harris,
    Math. Programming 5 (1973) 1). Among near equals the largest entry is taken, so that no entry is
    too small to divide by.
    """
    best = 0
    limit = np.inf
    for p in range(count):
        if lp.ratio[p] < lp.ratio[best]:
            best = p
        limit = min(limit, lp.ratio[p] + HARRIS / abs(lp.entry[lp.mark[p]]))
    if bland:
        limit = lp.ratio[best]
    for p in range(count):
        if lp.ratio[p] <= limit:
            j, k = lp.mark[p], lp.mark[best]
            if bland:
                if j < k:
                    best = p
            elif abs(lp.entry[j]) > abs(lp.entry[k]):
                best = p
    return best


@plain
def choose_column(lp: Lp, r: int, miss: float, largest: float, bland: bool) -> tuple[int, float]:
    """Return the entering variable and its ratio, and flip bounds before; -1 if none can enter.

    If none can enter, row `r` misses its bound even with every variable on the bound that helps
    most. The rest of the miss is then returned in place of the ratio. If a flip of the last
    candidate would leave only rounding of the miss, this candidate enters.
    """
    bound = lp.lower[lp.basis[r]] if miss > 0.0 else lp.upper[lp.basis[r]]
    rounding = IMPOSSIBLE * (1.0 + abs(bound))
    sign, slope = 1.0 if miss > 0.0 else -1.0, abs(miss)
    count, lists = 0, 0
    while True:
        if count == 0:
            # The first list has the entries that are not small beside the largest; the second has
            # all but noise.
            if lists == 2 or (lists == 1 and slope <= rounding):
                return -1, slope
            count = list_candidates(lp, sign, SMALLEST * largest if lists == 0 else 0.0)
            if lists == 1:
                count = drop_noise(lp, r, count)
            lists += 1
            continue
        p = pick(lp, count, bland)
        var = lp.mark[p]
        reach = abs(lp.entry[var]) * (lp.upper[var] - lp.lower[var])
        if slope <= reach or bland or (count == 1 and slope - reach <= rounding):
            return var, lp.ratio[p]
        slope -= reach
        flip(lp, var)
        count -= 1
        lp.mark[p], lp.ratio[p] = lp.mark[count], lp.ratio[count]
