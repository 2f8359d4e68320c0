"""Solve one linear program, and check the solution against the original data."""

from compiled import plain

from simplex.basis import cold_start, rebuild
from simplex.dual import FAILED, INFEASIBLE, NOT_DUAL_FEASIBLE, OPTIMAL, REFRESH, iterate
from simplex.primal import mend
from simplex.solution import accept
from simplex.state import AGE, RESULT, Lp

ACCURATE = 1e-9
"""The largest entry of `Lp.measure` that is accepted."""
LAST_RESORT = 1e-7
"""The same for the last attempt: the dual objective is a valid bound even with such errors."""
PATIENCE = 4
"""After so many steps for each variable, pivots are chosen by least index."""
ATTEMPTS = "from the basis before", "with its inverse rebuilt", "from cold", "by least indices"
"""The attempts, in this order."""


@plain
def settle(lp: Lp, patience: int, tolerance: float) -> int:
    """Make one attempt: the dual simplex, a check, and the primal simplex if the check fails."""
    result = iterate(lp, patience)
    if result == INFEASIBLE or accept(lp, tolerance):
        return result if result == INFEASIBLE else OPTIMAL
    if result == OPTIMAL:
        mend(lp)
        return OPTIMAL if accept(lp, tolerance) else FAILED
    return result


@plain
def reoptimise(lp: Lp) -> int:
    """Solve from the present basis; if that fails, by the other `ATTEMPTS`.

    Returns an outcome of `simplex.dual`; on `OPTIMAL` the arrays `x`, `y`, `dual`, `base` hold
    the solution.
    """
    result = FAILED
    for attempt in range(4):
        ready = True
        if attempt == 1 or lp.head[AGE] > REFRESH:
            ready = rebuild(lp)
        if (attempt >= 2 or not ready) and not cold_start(lp):
            result = NOT_DUAL_FEASIBLE
            break
        last = attempt == 3
        result = settle(lp, 0 if last else PATIENCE, LAST_RESORT if last else ACCURATE)
        if result == OPTIMAL or (result == INFEASIBLE and attempt >= 2):
            break
    lp.head[RESULT] = result
    return result
