"""Read the solution of a tableau, and check it against the original data."""

import numpy as np
from compiled import PLAIN
from numba import njit

from simplex.state import EXCESS, GAP, MEASURES, PRICE, RESIDUAL, ROWS, Lp, copy_values

ROUNDING = 1e-13
"""Residuals up to this are left as they are."""
MENDED = 1e-7
"""Largest relative excess over the cost of an unbounded variable that is mended."""
CANCELLED = 1e-5
"""The gap is relative to the objective plus this times the size of its terms, which may cancel, and
of a cost, because an objective of zero has rounding errors of that size."""


@njit(**PLAIN)
def read_primal(lp: Lp) -> float:
    """Fill `x`; return the largest residual of z = A x, relative to its largest term."""
    m, n = lp.a.shape
    worst = 0.0
    for j in range(n):
        position = lp.where[j]
        lp.x[j] = lp.xb[position] if position >= 0 else lp.xn[~position]
    for i in range(m + lp.key.size):
        if i >= m and lp.key[i - m] < 0:
            continue
        position = lp.where[n + i]
        total = lp.xb[position] if position >= 0 else lp.xn[~position]
        size = 1.0 + abs(total)
        row = lp.a[i] if i < m else lp.cut[i - m]
        for j in range(row.size):
            term = row[j] * lp.x[j]
            total -= term
            size = max(size, abs(term))
        worst = max(worst, abs(total) / size)
    return worst


@njit(**PLAIN)
def refine(lp: Lp) -> None:
    """Correct the basic values once by the residual of `x` (iterative refinement).

    Columns of nonbasic row activities are columns of the basis inverse. So a residual of such a row
    says directly how the basic values must move; a basic activity is what its row gives.
    """
    m, n = lp.a.shape
    lp.y[:] = 0.0
    for i in range(m + lp.key.size):
        if i < m or lp.key[i - m] >= 0:
            position = lp.where[n + i]
            row = lp.a[i] if i < m else lp.cut[i - m]
            total = 0.0 if position >= 0 else lp.xn[~position]
            for j in range(row.size):
                total -= row[j] * lp.x[j]
            lp.y[i] = total
    for i in range(m + lp.key.size):
        if i < m or lp.key[i - m] >= 0:
            position = lp.where[n + i]
            if position >= 0:
                lp.xb[position] = -lp.y[i]
            elif lp.y[i] != 0.0:
                for r in range(lp.head[ROWS]):
                    if lp.basis[r] < n:
                        lp.xb[r] += lp.tab[r, ~position] * lp.y[i]


@njit(**PLAIN)
def price(lp: Lp) -> None:
    """Fill `y` from the tableau and `dual` from `y` and the original matrix."""
    m, n = lp.a.shape
    copy_values(lp.cost, lp.dual)
    for i in range(m + lp.key.size):
        lp.y[i] = 0.0
        position = lp.where[n + i]
        if position >= 0 or (i >= m and lp.key[i - m] < 0):
            continue
        y = lp.red[~position]
        # A multiplier of the wrong sign on a one-sided row is rounding; zero is always allowed.
        if not np.isfinite(lp.lower[n + i] if y > 0.0 else lp.upper[n + i]):
            continue
        lp.y[i] = y
        row = lp.a[i] if i < m else lp.cut[i - m]
        for j in range(row.size):
            lp.dual[j] -= y * row[j]


@njit(**PLAIN)
def refine_price(lp: Lp) -> None:
    """Price; correct the multipliers once by the reduced costs of basic variables."""
    price(lp)
    largest = 0.0
    for r in range(lp.head[ROWS]):
        if lp.basis[r] < lp.cost.size:
            largest = max(largest, abs(lp.dual[lp.basis[r]]))
    if largest <= ROUNDING:
        return
    for r in range(lp.head[ROWS]):
        if lp.basis[r] < lp.cost.size:
            f = lp.dual[lp.basis[r]]
            for j in range(lp.cost.size):
                lp.red[j] += f * lp.tab[r, j]
    price(lp)


@njit(**PLAIN)
def mend_dual(lp: Lp) -> float:
    """Shrink `y` until no reduced cost has the wrong sign; return the largest one that still has.

    A reduced cost of the wrong sign on an unbounded variable would make the dual objective
    infinite. If it is small beside the cost, `y` is shrunk towards zero, where the reduced costs
    are the costs of the program.
    """
    worst, shrink = 0.0, 1.0
    for j in range(lp.cost.size):
        d, c = lp.dual[j], lp.cost[j]
        if d < 0.0 and lp.upper[j] == np.inf:
            if c - d < c * (1.0 + MENDED):
                shrink = min(shrink, c / (c - d))
            else:
                worst = max(worst, -d)
        elif d > 0.0 and lp.lower[j] == -np.inf:
            worst = max(worst, d)
    if shrink < 1.0:
        for i in range(lp.y.size):
            lp.y[i] *= shrink
        for j in range(lp.cost.size):
            lp.dual[j] = lp.cost[j] - (lp.cost[j] - lp.dual[j]) * shrink
    return worst


@njit(**PLAIN)
def read_dual(lp: Lp) -> float:
    """Fill `y`, `dual` and the dual objective; return the dual infeasibility that was not mended.

    For every variable the objective takes the bound that its recomputed reduced cost asks for. So
    by weak duality it is a lower bound of the optimum, even where `y` has rounding errors. An
    infinite bound is replaced by the variable's `ceiling`.
    """
    m, n = lp.a.shape
    refine_price(lp)
    worst = mend_dual(lp)
    value = 0.0
    for i in range(m + lp.key.size):
        if lp.y[i] != 0.0:
            value += lp.y[i] * (lp.lower[n + i] if lp.y[i] > 0.0 else lp.upper[n + i])
    for j in range(n):
        d = lp.dual[j]
        bound = lp.lower[j] if d > 0.0 else min(lp.upper[j], lp.ceiling[j])
        if np.isfinite(bound):
            value += d * bound
    lp.base[0] = value
    return worst


@njit(**PLAIN)
def read_excess(lp: Lp) -> float:
    """Return the largest excess of a basic variable over its bound, relative to one plus that."""
    worst = 0.0
    for i in range(lp.head[ROWS]):
        low, high = lp.lower[lp.basis[i]], lp.upper[lp.basis[i]]
        if lp.xb[i] < low:
            worst = max(worst, (low - lp.xb[i]) / (1.0 + abs(low)))
        elif lp.xb[i] > high:
            worst = max(worst, (lp.xb[i] - high) / (1.0 + abs(high)))
    return worst


@njit(**PLAIN)
def read_gap(lp: Lp) -> float:
    """Return the relative difference between the cost of `x` and the dual objective."""
    m, n = lp.a.shape
    cost, size = 0.0, 0.0
    for j in range(n):
        size = max(size, abs(lp.cost[j]))
    for j in range(n):
        cost += lp.cost[j] * lp.x[j]
        size += abs(lp.cost[j] * lp.x[j])
    for i in range(m + lp.key.size):
        if lp.y[i] != 0.0:
            size += abs(lp.y[i] * (lp.lower[n + i] if lp.y[i] > 0.0 else lp.upper[n + i]))
    gap = abs(cost - lp.base[0])
    return gap / (abs(lp.base[0]) + CANCELLED * size) if gap > 0.0 else 0.0


@njit(**PLAIN)
def accept(lp: Lp, tolerance: float) -> bool:
    """Read the solution, refined if need be; return whether it fits the original data.

    A solution is optimal if it keeps rows and bounds and costs no more than the dual objective. The
    errors in each of these are written to `measure`.
    """
    residual = read_primal(lp)
    for _ in range(2):
        if residual > ROUNDING:
            refine(lp)
            residual = read_primal(lp)
    lp.measure[RESIDUAL], lp.measure[EXCESS] = residual, read_excess(lp)
    lp.measure[PRICE] = read_dual(lp)
    lp.measure[GAP] = read_gap(lp)
    fits = True
    for k in range(MEASURES):
        fits = fits and lp.measure[k] <= tolerance  # not a number does not fit
    return fits
