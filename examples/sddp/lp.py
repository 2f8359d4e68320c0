"""Solving one linear program: pivots, then a check of the answer against the original data."""

import numpy as np
from compiled import PLAIN
from dual_simplex import FAILED, INFEASIBLE, NOT_DUAL_FEASIBLE, OPTIMAL, REFRESH, iterate
from lp_state import AGE, RESULT, ROWS, Lp, allocate, copy_values
from numba import njit
from tableau import cold_start, rebuild

ROUNDING = 1e-13
"""Residuals up to this are left as they are."""
RESIDUAL = 1e-9
"""Largest accepted residual of the primal and of the dual system."""
LAST_RESORT = 1e-5
"""Accepted after a cold start too: nearly parallel rows, and the dual bound is valid anyhow."""
MENDED = 1e-7
"""Largest relative excess over the cost of an unbounded variable that is mended."""

__all__ = ["FAILED", "INFEASIBLE", "NOT_DUAL_FEASIBLE", "OPTIMAL", "solve_dense"]


@njit(**PLAIN)
def read_primal(lp: Lp) -> float:
    """Fill `x`; return the largest residual of z = A x, relative to its largest term."""
    m, n = lp.a.shape
    for j in range(n):
        place = lp.where[j]
        lp.x[j] = lp.xb[place] if place >= 0 else lp.xn[~place]
    worst = 0.0
    for i in range(m + lp.key.size):
        if i >= m and lp.key[i - m] < 0:
            continue
        place = lp.where[n + i]
        total = lp.xb[place] if place >= 0 else lp.xn[~place]
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

    Columns of nonbasic row activities are columns of the basis inverse, so a residual of such a
    row says directly how the basic values must move; a basic activity is what its row gives.
    """
    m, n = lp.a.shape
    lp.y[:] = 0.0
    for i in range(m + lp.key.size):
        if i < m or lp.key[i - m] >= 0:
            place = lp.where[n + i]
            row = lp.a[i] if i < m else lp.cut[i - m]
            total = 0.0 if place >= 0 else lp.xn[~place]
            for j in range(row.size):
                total -= row[j] * lp.x[j]
            lp.y[i] = total
    for i in range(m + lp.key.size):
        if i < m or lp.key[i - m] >= 0:
            place = lp.where[n + i]
            if place >= 0:
                lp.xb[place] = -lp.y[i]
            elif lp.y[i] != 0.0:
                for r in range(lp.head[ROWS]):
                    if lp.basis[r] < n:
                        lp.xb[r] += lp.tab[r, ~place] * lp.y[i]


@njit(**PLAIN)
def price(lp: Lp) -> None:
    """Fill `y` from the tableau and `dual` from `y` and the original matrix."""
    m, n = lp.a.shape
    copy_values(lp.cost, lp.dual)
    for i in range(m + lp.key.size):
        lp.y[i] = 0.0
        place = lp.where[n + i]
        if place >= 0 or (i >= m and lp.key[i - m] < 0):
            continue
        y = lp.red[~place]
        # A multiplier of the wrong sign on a one-sided row is rounding; zero is always allowed.
        if not np.isfinite(lp.lower[n + i] if y > 0.0 else lp.upper[n + i]):
            continue
        lp.y[i] = y
        row = lp.a[i] if i < m else lp.cut[i - m]
        for j in range(row.size):
            lp.dual[j] -= y * row[j]


@njit(**PLAIN)
def read_dual(lp: Lp) -> float:
    """Fill `y`, `dual` and the dual objective; return the dual infeasibility that was not mended.

    For every variable the objective takes the bound that its recomputed reduced cost asks for,
    so by weak duality it is a lower bound of the optimum even where `y` has rounding errors. A
    reduced cost of the wrong sign on an unbounded variable would make that bound infinite: if it
    is small beside the cost, `y` is shrunk towards zero, where all costs are as given; else the
    variable's `ceiling` stands in for its bound.
    """
    m, n = lp.a.shape
    price(lp)
    largest = 0.0
    for r in range(lp.head[ROWS]):
        if lp.basis[r] < n:
            largest = max(largest, abs(lp.dual[lp.basis[r]]))
    if largest > ROUNDING:
        for r in range(lp.head[ROWS]):
            if lp.basis[r] < n:
                f = lp.dual[lp.basis[r]]
                for j in range(n):
                    lp.red[j] += f * lp.tab[r, j]
        price(lp)
    worst, shrink = 0.0, 1.0
    for j in range(n):
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
        for j in range(n):
            lp.dual[j] = lp.cost[j] - (lp.cost[j] - lp.dual[j]) * shrink
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
def accept(lp: Lp, tolerance: float) -> bool:
    """Read the solution, refined if need be; return whether it fits the original data."""
    primal = read_primal(lp)
    for _ in range(2):
        if primal > ROUNDING:
            refine(lp)
            primal = read_primal(lp)
    return max(primal, read_dual(lp)) <= tolerance


@njit(**PLAIN)
def reoptimise(lp: Lp) -> int:
    """Solve from the present basis; fall back to a rebuilt, then to a cold one, if in doubt.

    Returns an outcome of `dual_simplex`; on `OPTIMAL` the arrays `x`, `y`, `dual`, `base` hold
    the solution.
    """
    result = FAILED
    for attempt in range(3):
        ready = True
        if attempt == 1 or lp.head[AGE] > REFRESH:
            ready = rebuild(lp)
        if (attempt == 2 or not ready) and not cold_start(lp):
            result = NOT_DUAL_FEASIBLE
            break
        result = iterate(lp)
        if result == OPTIMAL and not accept(lp, RESIDUAL if attempt < 2 else LAST_RESORT):
            result = FAILED
        if result == OPTIMAL or (result == INFEASIBLE and lp.head[AGE] == 0):
            break
    lp.head[RESULT] = result
    return result


def solve_dense(
    cost: np.ndarray,
    a: np.ndarray,
    row_bounds: tuple[np.ndarray, np.ndarray],
    bounds: tuple[np.ndarray, np.ndarray],
) -> tuple[int, Lp]:
    """Solve  min cost.x,  row_bounds[0] <= a x <= row_bounds[1],  bounds[0] <= x <= bounds[1].

    Every cost must prefer a finite bound (positive: the lower one; negative: the upper one), or
    the outcome is `NOT_DUAL_FEASIBLE`; free variables of cost zero are allowed.

    Returns
    -------
    tuple
        Outcome, and the program with its solution in `x`, `y` and `base`.
    """
    lp = allocate(a.shape[0], a.shape[1], 0, 0)
    lp.a[:] = a
    lp.cost[:] = cost
    lp.lower[:] = np.concatenate([bounds[0], row_bounds[0]])
    lp.upper[:] = np.concatenate([bounds[1], row_bounds[1]])
    if not cold_start(lp):
        return NOT_DUAL_FEASIBLE, lp
    return reoptimise(lp), lp
