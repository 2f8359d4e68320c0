"""The simplex, callable from Python; the example calls it from compiled code alone.

Nothing is cached, because numba would not notice that a source of the example has changed.
"""

import numpy as np
from compiled import FROM_PYTHON
from numba import njit
from simplex import basis, rows, solve
from simplex.dual import NOT_DUAL_FEASIBLE
from simplex.state import Lp, allocate

OPTIONS = {**FROM_PYTHON, "cache": False}


@njit(**OPTIONS)
def cold_start(lp):
    return basis.cold_start(lp)


@njit(**OPTIONS)
def rebuild(lp):
    return basis.rebuild(lp)


@njit(**OPTIONS)
def add_row(lp, coefficients, low, key):
    rows.add_row(lp, coefficients, low, key)


@njit(**OPTIONS)
def drop_slack_rows(lp):
    rows.drop_slack_rows(lp)


@njit(**OPTIONS)
def reoptimise(lp):
    return solve.reoptimise(lp)


def solve_dense(
    cost: np.ndarray,
    a: np.ndarray,
    row_bounds: tuple[np.ndarray, np.ndarray],
    bounds: tuple[np.ndarray, np.ndarray],
) -> tuple[int, Lp]:
    """Solve  min cost.x,  row_bounds[0] <= a x <= row_bounds[1],  bounds[0] <= x <= bounds[1].

    Every cost must prefer a finite bound (positive: the lower one; negative: the upper one), or
    the outcome is `NOT_DUAL_FEASIBLE`; free variables of cost zero are allowed. Return the outcome,
    and the program with its solution in `x`, `y` and `base`.
    """
    lp = allocate(a, 0, 0)
    lp.cost[:] = cost
    lp.lower[:] = np.concatenate([bounds[0], row_bounds[0]])
    lp.upper[:] = np.concatenate([bounds[1], row_bounds[1]])
    if not cold_start(lp):
        return NOT_DUAL_FEASIBLE, lp
    return reoptimise(lp), lp
