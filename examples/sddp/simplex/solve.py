"""Solving one linear program: pivots, then a check of the answer against the original data."""

import numpy as np
from compiled import FROM_PYTHON
from numba import njit

from simplex.dual import FAILED, INFEASIBLE, NOT_DUAL_FEASIBLE, OPTIMAL, REFRESH, iterate
from simplex.solution import accept
from simplex.state import AGE, RESULT, Lp, allocate
from simplex.tableau import cold_start, rebuild

RESIDUAL = 1e-9
"""Largest accepted residual of the primal and of the dual system."""
LAST_RESORT = 1e-5
"""Accepted after a cold start too: nearly parallel rows, and the dual bound is valid anyhow."""


@njit(**FROM_PYTHON)
def reoptimise(lp: Lp) -> int:
    """Solve from the present basis; fall back to a rebuilt, then to a cold one, if in doubt.

    Returns an outcome of `simplex.dual`; on `OPTIMAL` the arrays `x`, `y`, `dual`, `base` hold
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
