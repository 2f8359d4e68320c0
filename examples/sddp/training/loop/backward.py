"""Backward pass of one stage: a rank computes cuts at its points; all ranks choose among these."""

import numpy as np
from compiled import plain
from simplex.dual import OPTIMAL
from simplex.rows import drop_slack_rows
from simplex.state import RESULT, copy_basis, copy_values, of_stack
from stage.pool import highest_cut, write_cut
from stage.solve import set_point, solve_stage

from training.loop.collectives import claim
from training.loop.memory import CUT_LEFT, FAILED_AT, NONE, OUTCOME, PRESENT, Memory, State
from training.plan import block_of

RISE, ZERO = 5e-9, 1e-12
"""A cut enters the pool if, at its own point, it exceeds the pool by enough.

The rise must exceed `RISE` times the pool's value plus `ZERO`. Smaller rises are rounding, and
nearly parallel cuts make ill-conditioned bases.
"""


@plain
def mark_new(memory: Memory, hydros: int, t: int) -> None:
    """Mark the trajectories that come into stage `t` with other volumes than all earlier ones.

    Points that are equal bit for bit would give equal cuts. All ranks have all points, so all ranks
    mark the same trajectories.
    """
    trial, new = memory.trial, memory.new
    for m in range(trial.shape[0]):
        new[m] = 1
        for d in range(m):
            same = new[d] == 1
            for h in range(t * hydros, (t + 1) * hydros):
                if same and trial[m, h] != trial[d, h]:
                    same = False
                    break
            if same:
                new[m] = 0
                break


@plain
def expected_cut(state: State, t: int, basis, point: np.ndarray, cut: np.ndarray) -> None:  # type: ignore
    """Write to `cut` the expected-cost cut of stage `t` at `point`, over all its openings.

    `cut` receives H slopes and the intercept; after a failure, also the outcome, the opening and
    the errors. Value and slopes are those of the dual solution, so the cut is valid even if `lp` is
    not quite optimal.

    Openings are solved from dry to wet. The first solve starts from `basis`, each further solve
    from the basis of the opening before.
    """
    problem, lp, hydros = state.problem, state.memory.lp, point.size
    copy_values(problem.cost[t], lp.cost)
    copy_basis(basis, lp)
    cut[:] = 0.0
    for p in range(problem.first[t], problem.first[t + 1]):
        k = problem.order[p]
        weight = problem.weight[k]
        if weight == 0.0:
            continue
        set_point(lp, point, problem.noise[k])
        if solve_stage(lp, state.pool, t, state.memory.row) != OPTIMAL:
            cut[hydros + OUTCOME] = lp.head[RESULT]
            cut[hydros + FAILED_AT] = k - problem.first[t]
            copy_values(lp.measure, cut[hydros + CUT_LEFT :])
            return
        value = lp.base[0]
        for h in range(hydros):
            value -= lp.y[h] * point[h]
            cut[h] += weight * lp.y[h]
        cut[hydros] += weight * value


@plain
def refer_near(state: State, t: int, point: np.ndarray) -> None:
    """Put `memory.near` at a basis of stage `t` at `point`; all points of the stage start there.

    The solver finds this basis from the reference basis of the stage, which belongs to another
    point and to older cuts. So the points need fewer pivots from `memory.near` than from there.
    """
    problem, pool, near = state.problem, state.pool, state.memory.near
    reference = of_stack(state.memory.references, t)
    copy_values(problem.cost[t], near.cost)
    copy_basis(reference, near)
    set_point(near, point, problem.noise[problem.order[problem.first[t]]])
    if solve_stage(near, pool, t, state.memory.row) == OPTIMAL:
        drop_slack_rows(near)
    else:
        copy_basis(reference, near)


@plain
def value_at(cut: np.ndarray, point: np.ndarray) -> float:
    """Return the value of `cut` at `point`, rounded as `highest_cut` rounds it."""
    value = cut[point.size]
    for h in range(point.size):
        value += cut[h] * point[h]
    return value


@plain
def backward_step(work, state, t) -> None:  # type: ignore
    """Compute the cuts of stage `t` at those new points that this rank gets, into their rows."""
    memory, hydros, stages = state.memory, state.problem.start.size, state.problem.cost.shape[0]
    here, there = t * hydros, (t + 1) * hydros
    is_open = False
    while True:
        m = claim(work, memory.ahead, stages - t, stages)
        if m == NONE:
            return
        if memory.new[m] == 0:
            continue
        if not is_open:
            refer_near(state, t, memory.trial[0, here:there])
            is_open = True
        point, cut = memory.trial[m, here:there], memory.cuts[m]
        expected_cut(state, t, memory.near, point, cut)
        _, cut[hydros + PRESENT] = highest_cut(state.pool, t - 1, point, 0.0)


@plain
def choose_rising(state: State, t: int) -> tuple[int, float]:
    """List in `rising` the cuts that raise stage `t - 1` at their own point, by trajectory.

    Returns the number of these cuts, and the largest rise. A cut that does not rise above the pool
    at its own point adds nothing there, and is left out. All ranks find the same list.
    """
    memory, hydros = state.memory, state.memory.spare.size
    chosen, largest = 0, 0.0
    for m in range(memory.new.size):
        if memory.new[m] == 0:
            continue
        point = memory.trial[m, t * hydros : (t + 1) * hydros]
        present = memory.cuts[m, hydros + PRESENT]
        for j in range(chosen):
            present = max(present, value_at(memory.cuts[memory.rising[j]], point))
        value = value_at(memory.cuts[m], point)
        if value > present + RISE * abs(present) + ZERO:
            memory.rising[chosen] = m
            chosen += 1
            largest = max(largest, value - present)
    return chosen, largest


@plain
def write_rising(state: State, t: int, chosen: int) -> None:
    """Write this rank's share of the `chosen` cuts to stage `t - 1` of its node's pool."""
    pool, memory = state.pool, state.memory
    share, c = block_of(chosen, pool.writer, pool.writers), pool.count[t - 1]
    for j in range(share.begin, share.end):
        write_cut(pool, t - 1, c + j, memory.cuts[memory.rising[j]])
    pool.count[t - 1] = c + chosen
