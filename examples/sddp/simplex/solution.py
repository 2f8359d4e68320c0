"""Read the solution of a basis, and check it against the original data."""

import numpy as np
from compiled import plain

from simplex.basis import add_line, add_row_of_matrix, clear_column
from simplex.state import (
    EXCESS,
    GAP,
    MEASURES,
    PRICE,
    RESIDUAL,
    ROWS,
    Lp,
    copy_values,
    end_of,
    has_row,
    rows_of,
)

ROUNDING = 1e-13
"""Residuals up to this size are not corrected."""
MENDED = 1e-7
"""A reduced cost of the wrong sign, on an unbounded variable, is repaired up to this part of its
cost."""
CANCELLED = 1e-5
"""The gap is relative to the objective plus this times the size of its terms and the largest cost:
terms may cancel, and then the rounding errors of the objective are relative to that size."""


@plain
def residuals(lp: Lp) -> float:
    """Write to `y` by how much each row of z = A x is missed; return the largest relative miss."""
    n, m = lp.cost.size, rows_of(lp)
    first, index, value = lp.by_row
    worst = 0.0
    for i in range(end_of(lp)):
        if not has_row(lp, i):
            continue
        total = lp.x[n + i]
        size = 1.0 + abs(total)
        if i < m:
            for e in range(first[i], first[i + 1]):
                term = value[e] * lp.x[index[e]]
                total -= term
                size = max(size, abs(term))
        else:
            for j in range(lp.cut.shape[1]):
                term = lp.cut[i - m, j] * lp.x[j]
                total -= term
                size = max(size, abs(term))
        lp.y[i] = total
        worst = max(worst, abs(total) / size)
    return worst


@plain
def refine(lp: Lp) -> None:
    """Correct the basic values once by the residuals in `y` (iterative refinement)."""
    clear_column(lp)
    for i in range(end_of(lp)):
        if has_row(lp, i) and lp.y[i] != 0.0:
            add_line(lp, i, -lp.y[i], lp.column)
    for p in range(lp.head[ROWS]):
        lp.x[lp.basis[p]] += lp.column[p]


@plain
def price(lp: Lp) -> None:
    """Fill `y` from the reduced costs, and `dual` from `y` and the original matrix."""
    n = lp.cost.size
    copy_values(lp.cost, lp.dual)
    for i in range(end_of(lp)):
        lp.y[i] = 0.0
        if not has_row(lp, i) or lp.place[n + i] >= 0:
            continue
        y = lp.red[n + i]
        # If a row has one bound and its multiplier has the wrong sign, the multiplier is rounding;
        # zero is always allowed.
        if not np.isfinite(lp.lower[n + i] if y > 0.0 else lp.upper[n + i]):
            continue
        lp.y[i] = y
        if y != 0.0:
            add_row_of_matrix(lp, i, -y, lp.dual)


@plain
def refine_price(lp: Lp) -> None:
    """Price; then correct the multipliers once by the reduced costs of basic variables."""
    n = lp.cost.size
    price(lp)
    largest = 0.0
    for p in range(lp.head[ROWS]):
        if lp.basis[p] < n:
            largest = max(largest, abs(lp.dual[lp.basis[p]]))
    if largest <= ROUNDING:
        return
    for i in range(end_of(lp)):
        if has_row(lp, i) and lp.place[n + i] < 0:
            for p in range(lp.head[ROWS]):
                if lp.basis[p] < n:
                    lp.red[n + i] -= lp.dual[lp.basis[p]] * lp.inverse[i, p]
    price(lp)


@plain
def mend_dual(lp: Lp) -> float:
    """Shrink `y` until no reduced cost has the wrong sign; return the largest that still has it.

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
        for i in range(end_of(lp)):
            lp.y[i] *= shrink
        for j in range(lp.cost.size):
            lp.dual[j] = lp.cost[j] - (lp.cost[j] - lp.dual[j]) * shrink
    return worst


@plain
def read_dual(lp: Lp) -> float:
    """Fill `y`, `dual` and the dual objective; return the dual infeasibility that remains.

    For every variable, the objective uses the bound that its recomputed reduced cost asks for. So
    by weak duality the objective is a lower bound of the optimum, even if `y` has rounding errors.
    An infinite bound is replaced by the variable's `ceiling`.
    """
    n = lp.cost.size
    refine_price(lp)
    worst = mend_dual(lp)
    value = 0.0
    for i in range(end_of(lp)):
        if has_row(lp, i) and lp.y[i] != 0.0:
            value += lp.y[i] * (lp.lower[n + i] if lp.y[i] > 0.0 else lp.upper[n + i])
    for j in range(n):
        d = lp.dual[j]
        bound = lp.lower[j] if d > 0.0 else min(lp.upper[j], lp.ceiling[j])
        if np.isfinite(bound):
            value += d * bound
    lp.base[0] = value
    return worst


@plain
def read_excess(lp: Lp) -> float:
    """Return the largest excess of a basic variable over its bound, relative to 1 + the bound."""
    worst = 0.0
    for i in range(lp.head[ROWS]):
        low, high, x = lp.lower[lp.basis[i]], lp.upper[lp.basis[i]], lp.x[lp.basis[i]]
        if x < low:
            worst = max(worst, (low - x) / (1.0 + abs(low)))
        elif x > high:
            worst = max(worst, (x - high) / (1.0 + abs(high)))
    return worst


@plain
def read_gap(lp: Lp) -> float:
    """Return the relative difference between the cost of `x` and the dual objective."""
    n = lp.cost.size
    cost, size = 0.0, 0.0
    for j in range(n):
        size = max(size, abs(lp.cost[j]))
    for j in range(n):
        cost += lp.cost[j] * lp.x[j]
        size += abs(lp.cost[j] * lp.x[j])
    for i in range(end_of(lp)):
        if has_row(lp, i) and lp.y[i] != 0.0:
            size += abs(lp.y[i] * (lp.lower[n + i] if lp.y[i] > 0.0 else lp.upper[n + i]))
    gap = abs(cost - lp.base[0])
    return gap / (abs(lp.base[0]) + CANCELLED * size) if gap > 0.0 else 0.0


@plain
def accept(lp: Lp, tolerance: float) -> bool:
    """Read the solution, and refine it if necessary; return whether it fits the original data.

    A solution is optimal if it keeps rows and bounds and costs no more than the dual objective. The
    errors in each of these three are written to `measure`.
    """
    residual = residuals(lp)
    for _ in range(2):
        if residual > ROUNDING:
            refine(lp)
            residual = residuals(lp)
    lp.measure[RESIDUAL], lp.measure[EXCESS] = residual, read_excess(lp)
    lp.measure[PRICE] = read_dual(lp)
    lp.measure[GAP] = read_gap(lp)
    fits = True
    for k in range(MEASURES):
        fits = fits and lp.measure[k] <= tolerance  # a NaN does not fit
    return fits
