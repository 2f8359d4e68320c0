"""The dense tableau of a basis: cold start, pivot, rebuild, adding and dropping rows.

A program has as many nonbasic variables as structural ones, however many rows it has. So the
tableau always has n columns. At n = 30 a pivot is a few hundred multiply-adds on contiguous rows,
less than the bookkeeping of a factorised basis would cost. Method: G. B. Dantzig, "Linear
Programming and Extensions" (1963), ch. 8 and 18, with bounded variables.
"""

import numpy as np
from compiled import FROM_PYTHON, PLAIN
from numba import njit

from simplex.state import AGE, AT_LOWER, AT_UPPER, AT_ZERO, PIVOTS, ROWS, SHIFTED, Lp

SINGULAR = 1e-9
"""A pivot smaller than this is taken for zero (programs are scaled to entries near one)."""


@njit(**PLAIN)
def resting_value(lp: Lp, var: int) -> float:
    """Return the value of the nonbasic variable `var`."""
    if lp.status[var] == AT_LOWER:
        return lp.lower[var]
    if lp.status[var] == AT_UPPER:
        return lp.upper[var]
    return 0.0


@njit(**PLAIN)
def slack_tableau(lp: Lp) -> None:
    """Write the tableau whose basis is all row activities: `tab` is the matrix itself."""
    m, n = lp.a.shape
    for j in range(n):
        lp.nonbasic[j] = j
        lp.where[j] = ~j
        lp.red[j] = lp.cost[j]
    for i in range(m):
        lp.basis[i] = n + i
        lp.where[n + i] = i
        for j in range(n):
            lp.tab[i, j] = lp.a[i, j]
    rows = m
    for s in range(lp.key.size):
        if lp.key[s] >= 0:
            lp.basis[rows] = n + m + s
            lp.where[n + m + s] = rows
            for j in range(n):
                lp.tab[rows, j] = 0.0
            for j in range(lp.cut.shape[1]):
                lp.tab[rows, j] = lp.cut[s, j]
            rows += 1
    lp.head[ROWS] = rows
    lp.head[AGE] = lp.head[SHIFTED] = 0


@njit(**FROM_PYTHON)
def cold_start(lp: Lp) -> bool:
    """Put `lp` at the slack basis, each variable on the bound its cost prefers; rows stay.

    Returns False where a cost prefers an infinite bound, so that no such start exists.
    """
    slack_tableau(lp)
    for j in range(lp.cost.size):
        low, high = np.isfinite(lp.lower[j]), np.isfinite(lp.upper[j])
        if (lp.cost[j] > 0.0 and not low) or (lp.cost[j] < 0.0 and not high):
            return False
        if lp.cost[j] < 0.0 or not low:
            lp.status[j] = AT_UPPER if high else AT_ZERO
        else:
            lp.status[j] = AT_LOWER
    return True


@njit(**PLAIN)
def pivot(lp: Lp, r: int, c: int) -> None:
    """Exchange the basic variable of row `r` and the nonbasic variable of column `c`."""
    tab, red = lp.tab, lp.red
    n = red.size
    inverse = 1.0 / tab[r, c]
    for j in range(n):
        tab[r, j] *= -inverse
    tab[r, c] = inverse
    for i in range(lp.head[ROWS]):
        f = tab[i, c]
        if i != r and f != 0.0:
            tab[i, c] = 0.0
            for j in range(n):
                tab[i, j] += f * tab[r, j]
    f = red[c]
    if f != 0.0:
        red[c] = 0.0
        for j in range(n):
            red[j] += f * tab[r, j]
    entering, leaving = lp.nonbasic[c], lp.basis[r]
    lp.basis[r] = entering
    lp.where[entering] = r
    lp.nonbasic[c] = leaving
    lp.where[leaving] = ~c
    lp.head[AGE] += 1
    lp.head[PIVOTS] += 1


@njit(**FROM_PYTHON)
def rebuild(lp: Lp) -> bool:
    """Recompute the tableau of the present basis from the data, shedding accumulated error.

    Each structural variable of the basis is pivoted into the row where its entry is largest
    among rows whose activity must leave. Returns False if the basis is singular to working
    precision; the caller then starts cold.
    """
    n = lp.cost.size
    wanted = 0
    for j in range(n):
        lp.mark[j] = 1 if lp.where[j] >= 0 else 0
        wanted += lp.mark[j]
    # y is free for use here: 1 marks a row activity that stays basic.
    for i in range(lp.y.size):
        lp.y[i] = 1.0 if lp.where[n + i] >= 0 else 0.0
    slack_tableau(lp)
    for _ in range(wanted):
        best, r, c = SINGULAR, -1, -1
        for i in range(lp.head[ROWS]):
            if lp.basis[i] >= n and lp.y[lp.basis[i] - n] == 0.0:
                for j in range(n):
                    var = lp.nonbasic[j]
                    if var < n and lp.mark[var] == 1 and abs(lp.tab[i, j]) > best:
                        best, r, c = abs(lp.tab[i, j]), i, j
        if r < 0:
            return False
        pivot(lp, r, c)
    lp.head[AGE] = 0
    return True


@njit(**FROM_PYTHON)
def add_row(lp: Lp, coefficients: np.ndarray, low: float, key: int) -> None:
    """Add the row  low <= coefficients . x[:p]  with its activity basic; a slot must be free."""
    m, n = lp.a.shape
    slot = 0
    while lp.key[slot] >= 0:
        slot += 1
    row = lp.head[ROWS]
    lp.key[slot] = key
    for j in range(n):
        lp.tab[row, j] = 0.0
    for p in range(coefficients.size):
        f = coefficients[p]
        lp.cut[slot, p] = f
        position = lp.where[p]
        if position < 0:
            lp.tab[row, ~position] += f
        elif f != 0.0:
            for j in range(n):
                lp.tab[row, j] += f * lp.tab[position, j]
    var = n + m + slot
    lp.lower[var], lp.upper[var] = low, np.inf
    lp.status[var] = AT_LOWER
    lp.basis[row], lp.where[var] = var, row
    lp.head[ROWS] = row + 1


@njit(**FROM_PYTHON)
def drop_slack_rows(lp: Lp) -> None:
    """Remove every added row whose activity is basic: it does not bind at this basis."""
    m, n = lp.a.shape
    for slot in range(lp.key.size):
        row = lp.where[n + m + slot]
        if lp.key[slot] >= 0 and row >= 0:
            last = lp.head[ROWS] - 1
            if row != last:
                for j in range(n):
                    lp.tab[row, j] = lp.tab[last, j]
                lp.xb[row] = lp.xb[last]
                lp.basis[row] = lp.basis[last]
                lp.where[lp.basis[row]] = row
            lp.key[slot] = -1
            lp.head[ROWS] = last
