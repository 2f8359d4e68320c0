"""Backward pass of one stage: cuts at a block of points, and their place in the pool."""

import numpy as np
from compiled import PLAIN
from dual_simplex import OPTIMAL
from lp_state import RESULT, Lp, copy_basis
from numba import njit
from plan import Memory
from pool import Pool, append_cut, highest_cut
from problem import Problem
from stage import open_stage, refer_stage, set_point, solve_stage

NEWS, ZERO = 5e-9, 1e-12
"""A cut is appended if it raises the pool at its own point by `NEWS` of its value plus `ZERO`.

Cuts that rise less are rounding, and nearly parallel cuts make ill-conditioned bases.
"""


@njit(**PLAIN)
def find_distinct(memory: Memory, hydros: int, t: int) -> int:
    """List trajectories whose incoming volume at stage `t` no earlier one has, bit for bit.

    Equal points would give equal cuts. All ranks hold all points, so all find the same list.
    """
    trial, distinct = memory.trial, memory.distinct
    count = 0
    for m in range(trial.shape[0]):
        new = True
        for d in range(count):
            same = True
            for h in range(t * hydros, (t + 1) * hydros):
                if trial[m, h] != trial[distinct[d], h]:
                    same = False
                    break
            if same:
                new = False
                break
        if new:
            distinct[count] = m
            count += 1
    return count


@njit(**PLAIN)
def expected_cut(
    lp: Lp,
    problem: Problem,
    pool: Pool,
    t: int,
    point: np.ndarray,
    row: np.ndarray,
    cut: np.ndarray,
) -> None:
    """Write to `cut` the expected-cost cut of stage `t` at `point`, over all its openings.

    `cut` receives H slopes, the intercept, the outcome and the opening of a failure. Value and
    slopes are those of the dual solution: the cut is valid even if `lp` is not quite optimal.
    `lp` must stand at the stage's reference basis; openings go from dry to wet, each from the
    basis of the one before.
    """
    hydros = point.size
    cut[:] = 0.0
    for p in range(problem.first[t], problem.first[t + 1]):
        k = problem.order[p]
        weight = problem.weight[k]
        if weight == 0.0:
            continue
        set_point(lp, point, problem.noise[k])
        if solve_stage(lp, pool, t, row) != OPTIMAL:
            cut[hydros + 1] = lp.head[RESULT]
            cut[hydros + 2] = k - problem.first[t]
            return
        value = lp.base[0]
        for h in range(hydros):
            value -= lp.y[h] * point[h]
            cut[h] += weight * lp.y[h]
        cut[hydros] += weight * value


@njit(**PLAIN)
def backward_block(
    problem: Problem, pool: Pool, memory: Memory, t: int, begin: int, end: int
) -> None:
    """Compute the cuts of stage `t` at distinct points begin..end-1 into `memory.my_cuts`."""
    hydros = problem.start.size
    lp, distinct = memory.lp, memory.distinct
    if end == begin:
        return
    here, there = t * hydros, (t + 1) * hydros
    refer_stage(
        memory.reference, problem, pool, t, memory.trial[distinct[0], here:there], memory.row
    )
    open_stage(lp, problem, t)
    for i in range(begin, end):
        copy_basis(memory.reference, lp)
        point = memory.trial[distinct[i], here:there]
        expected_cut(lp, problem, pool, t, point, memory.row, memory.my_cuts[i - begin])


@njit(**PLAIN)
def append_news(pool: Pool, memory: Memory, t: int, count: int, hydros: int) -> float:
    """Append to stage `t - 1` the cuts that raise it at their own point, in trajectory order.

    Returns the largest rise. A cut equal to a present one, or below the pool at its own point,
    says nothing new there and is left out.
    """
    largest = 0.0
    for i in range(count):
        cut = memory.cuts[i, : hydros + 1]
        point = memory.trial[memory.distinct[i], t * hydros : (t + 1) * hydros]
        value = cut[hydros]
        for h in range(hydros):
            value += cut[h] * point[h]
        _, present = highest_cut(pool, t - 1, point, 0.0)
        if value > present + NEWS * abs(present) + ZERO:
            append_cut(pool, t - 1, cut)
            largest = max(largest, value - present)
    return largest
