"""Fresh paths: the present policy simulated on scenarios that no iteration has drawn."""

import math

import numpy as np
from compiled import FROM_PYTHON
from numba import njit
from simplex.dual import OPTIMAL
from simplex.state import MEASURES, PIVOTS, RESULT, copy_basis, copy_values
from stage.solve import refer_stage, set_point

from cobre_comm import random
from training.loop.forward import solve_step
from training.loop.memory import NONE, State
from training.sampling import draw_opening

DRAWN = 2**61
"""Added to an iteration's number to name its fresh paths; no training has so many iterations."""

PATH, STATUS, STAGE, OPENING, VOLUMES = 0, 1, 2, 3, 4
"""Fields of a failure: the first path that cannot continue, or `NONE`; its outcome, stage, opening
and incoming volumes; then the errors of the solution there (`Lp.measure`)."""


def no_failure(hydros: int) -> np.ndarray:
    """Return the record of failures of a rank that has no failure."""
    failure = np.zeros(VOLUMES + hydros + MEASURES)
    failure[PATH] = NONE
    return failure


@njit(**FROM_PYTHON)
def walk_fresh(
    state: State,
    iteration: int,
    begin: int,
    volumes: np.ndarray,
    costs: np.ndarray,
    failure: np.ndarray,
) -> None:
    """Simulate the fresh paths of numbers begin..begin + n - 1 into `costs` (n,).

    If a path cannot continue, its cost is NaN. `volumes` (n, H) is work space. Each decision starts
    from the reference basis of its stage, which is the same on all ranks, so a cost does not depend
    on the rank that computes it.
    """
    problem, pool, plan, memory = state[:4]
    hydros, lp, base = problem.start.size, memory.lp, memory.near
    for i in range(costs.size):
        costs[i] = 0.0
        copy_values(problem.start, volumes[i])
    for t in range(problem.cost.shape[0] if costs.size else 0):
        refer_stage(base, problem, pool, t, memory.known[t], memory.row)
        copy_values(problem.cost[t], lp.cost)
        for i in range(costs.size):
            if math.isnan(costs[i]):
                continue
            key = random.key(plan.seed, DRAWN + iteration, begin + i, t)
            first, last = problem.first[t], problem.first[t + 1]
            k = draw_opening(problem.weight, first, last, key, False)
            copy_basis(base, lp)
            set_point(lp, volumes[i], problem.noise[k])
            costs[i] += solve_step(lp, pool, t, memory.row, volumes[i])
            if lp.head[RESULT] != OPTIMAL:
                costs[i] = math.nan
                if failure[PATH] == NONE or begin + i < failure[PATH]:
                    failure[PATH], failure[STATUS] = begin + i, lp.head[RESULT]
                    failure[STAGE], failure[OPENING] = t, k - first
                    copy_values(volumes[i], failure[VOLUMES:])
                    copy_values(lp.measure, failure[VOLUMES + hydros :])
    # The pivots of fresh paths do not count as pivots of the next iteration.
    lp.head[PIVOTS] = base.head[PIVOTS] = 0
