"""Backward pass of one stage: cuts at a block of points, and which of them enter the pool."""

import numpy as np
from compiled import PLAIN
from numba import njit
from simplex.dual import OPTIMAL
from simplex.state import RESULT, copy_basis
from stage.pool import append_cut, highest_cut
from stage.solve import open_stage, refer_stage, set_point, solve_stage

from training.memory import Memory, State
from training.plan import Block

RISE, ZERO = 5e-9, 1e-12
"""A cut is appended if it raises the pool at its own point by `RISE` of its value plus `ZERO`.

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
def expected_cut(state: State, t: int, point: np.ndarray, cut: np.ndarray) -> None:
    """Write to `cut` the expected-cost cut of stage `t` at `point`, over all its openings.

    `cut` receives H slopes, the intercept, the outcome and the opening of a failure. Value and
    slopes are those of the dual solution: the cut is valid even if `lp` is not quite optimal.
    `memory.lp` must stand at the stage's reference basis; openings go from dry to wet, each from
    the basis of the one before.
    """
    problem, lp, hydros = state.problem, state.memory.lp, point.size
    cut[:] = 0.0
    for p in range(problem.first[t], problem.first[t + 1]):
        k = problem.order[p]
        weight = problem.weight[k]
        if weight == 0.0:
            continue
        set_point(lp, point, problem.noise[k])
        if solve_stage(lp, state.pool, t, state.memory.row) != OPTIMAL:
            cut[hydros + 1] = lp.head[RESULT]
            cut[hydros + 2] = k - problem.first[t]
            return
        value = lp.base[0]
        for h in range(hydros):
            value -= lp.y[h] * point[h]
            cut[h] += weight * lp.y[h]
        cut[hydros] += weight * value


@njit(**PLAIN)
def refer_basis(state: State, t: int, point: np.ndarray) -> None:
    """Compute the reference basis of stage `t` at `point`, and put `memory.lp` at it."""
    problem, pool, _, memory = state
    refer_stage(memory.reference, problem, pool, t, point, memory.row)
    open_stage(memory.lp, problem, t)
    copy_basis(memory.reference, memory.lp)


@njit(**PLAIN)
def backward_block(state: State, t: int, block: Block) -> None:
    """Compute the cuts of stage `t` at the distinct points of `block` into `memory.my_cuts`."""
    memory, hydros = state.memory, state.problem.start.size
    here, there = t * hydros, (t + 1) * hydros
    if block.end == block.begin:
        return
    refer_basis(state, t, memory.trial[memory.distinct[0], here:there])
    for i in range(block.begin, block.end):
        copy_basis(memory.reference, memory.lp)
        point = memory.trial[memory.distinct[i], here:there]
        expected_cut(state, t, point, memory.my_cuts[i - block.begin])


@njit(**PLAIN)
def append_rising(state: State, t: int, count: int) -> float:
    """Append to stage `t - 1` the cuts that raise it at their own point, in trajectory order.

    Returns the largest rise. A cut equal to a present one, or below the pool at its own point,
    says nothing new there and is left out.
    """
    _, pool, _, memory = state
    hydros, largest = memory.spare.size, 0.0
    for i in range(count):
        cut = memory.cuts[i, : hydros + 1]
        point = memory.trial[memory.distinct[i], t * hydros : (t + 1) * hydros]
        value = cut[hydros]
        for h in range(hydros):
            value += cut[h] * point[h]
        _, present = highest_cut(pool, t - 1, point, 0.0)
        if value > present + RISE * abs(present) + ZERO:
            append_cut(pool, t - 1, cut)
            largest = max(largest, value - present)
    return largest
