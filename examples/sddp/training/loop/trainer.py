"""An iteration of training: one compiled function over any communicator.

Every node holds the whole cut pool. In an iteration ranks claim trajectories, and then for each
stage points of the backward pass. The results of an item go to a row of its own, in memory that the
ranks of a node share. Each step ends with a fence, and an allgatherv if there are several nodes; in
the backward pass another fence follows, after the new cuts were written to the pool. Then one
allreduce MIN of the bound and one allreduce SUM of two counts follow. Two exact sums give the mean
and the variance of the simulated cost. If cuts are selected, a last fence shows the cuts that are
left.

Rows are ordered by trajectory, whichever rank has computed them, and the bounds that MIN reduces
are equal on all ranks. Counts are whole numbers, and an exact sum does not depend on the split over
ranks. So every number has the same bits for every number of ranks.

Method: M. V. F. Pereira, L. M. V. G. Pinto, Math. Programming 52 (1991) 359.
"""

import numpy as np
from compiled import FROM_PYTHON, plain
from numba import njit
from simplex.dual import OPTIMAL
from simplex.state import PIVOTS, copy_values, of_stack

from cobre_comm import monotonic_ns
from training.loop.backward import (
    backward_step,
    choose_rising,
    expected_cut,
    mark_new,
    value_at,
    write_rising,
)
from training.loop.collectives import enter, estimate, fence, my_share, reduce_all, share
from training.loop.forward import forward_pass, refer_stages
from training.loop.memory import (
    BACKWARD,
    BOUND,
    COST,
    COUNTED,
    CUT_LEFT,
    FAILED_AT,
    FORWARD,
    LEFT,
    OK,
    OPENING,
    OUTCOME,
    STAGE,
    STATUS,
    TAIL,
    Memory,
    State,
)
from training.loop.select import count_kept, select_cuts


@plain
def fail(
    memory: Memory, phase: int, outcome: int, t: int, opening: int, m: int, left: np.ndarray
) -> None:
    """Record a failure: the first one in trajectory order, which is the same on all ranks."""
    hydros = memory.error.size - 4
    memory.error[0], memory.error[1] = phase, outcome
    copy_values(left, memory.left)
    memory.error[2], memory.error[3] = t, opening
    for h in range(hydros):
        memory.error[4 + h] = memory.trial[m, t * hydros + h]


@plain
def share_trajectories(comm, work, region, state, iteration) -> None:  # type: ignore
    """Do the forward pass."""
    memory, (stages, hydros) = state.memory, state.memory.known.shape
    refer_stages(state)
    fence(region)
    forward_pass(work, state, iteration)
    share(comm, region, memory.trial, state, 0)
    for t in range(stages):
        copy_values(memory.trial[0, t * hydros : (t + 1) * hydros], memory.known[t])
    tail = stages * hydros
    for m in range(memory.trial.shape[0]):
        status = int(memory.trial[m, tail + STATUS])
        if status != OPTIMAL:
            t, k = int(memory.trial[m, tail + STAGE]), int(memory.trial[m, tail + OPENING])
            fail(memory, FORWARD, status, t, k, m, memory.trial[m, tail + LEFT :])
            break


@plain
def share_cuts(comm, work, region, cuts, state, t) -> float:  # type: ignore
    """Do the backward pass of stage `t`; return the largest rise.

    A rank computes its cuts in place, in rows of `memory.cuts`. The last fence also ends the
    reading of these rows: after that, the ranks of the node may write the rows of the next stage.
    """
    memory, hydros = state.memory, state.problem.start.size
    mark_new(memory, hydros, t)
    backward_step(work, state, t)
    share(comm, region, memory.cuts, state, state.problem.cost.shape[0] - t)
    for m in range(memory.new.size):
        status = int(memory.cuts[m, hydros + OUTCOME]) if memory.new[m] == 1 else OPTIMAL
        if status != OPTIMAL:
            opening = int(memory.cuts[m, hydros + FAILED_AT])
            left = memory.cuts[m, hydros + CUT_LEFT :]
            fail(memory, BACKWARD, status, t, opening, m, left)
            return 0.0
    chosen, gain = choose_rising(state, t)
    write_rising(state, t, chosen)
    fence(cuts)
    return gain


@plain
def expected_first_stage(state: State) -> float:
    """Return the expected value of stage 0 under the present cuts, the same on every rank."""
    start, cut = state.problem.start, state.memory.first_cut
    hydros = start.size
    expected_cut(state, 0, of_stack(state.memory.references, 0), start, cut)
    if cut[hydros + OUTCOME] != OPTIMAL:
        status, opening = int(cut[hydros + OUTCOME]), int(cut[hydros + FAILED_AT])
        fail(state.memory, BOUND, status, 0, opening, 0, cut[hydros + CUT_LEFT :])
    return value_at(cut, start)


@plain
def weigh_costs(records: np.ndarray, costs: np.ndarray) -> int:
    """Write the weighted costs of those `records` that count to `costs`; return their number."""
    tail, count = records.shape[1] - TAIL, 0
    for i in range(records.shape[0]):
        weight = records[i, tail + COUNTED]
        if weight >= 0.0:
            costs[count] = weight * records[i, tail + COST]
            count += 1
    return count


@plain
def reduce_bounds(comm, state, line) -> None:  # type: ignore
    """Reduce the bound and the statistics, and write the results to `line`."""
    memory = state.memory
    bound, stats = memory.bound, memory.stats
    bound[0] = expected_first_stage(state)
    first, last = my_share(comm, state.plan.trajectories)
    count = weigh_costs(memory.trial[first:last], memory.costs)
    costs = memory.costs[:count]
    stats[0] = count
    stats[1] = memory.lp.head[PIVOTS] + memory.near.head[PIVOTS]
    memory.lp.head[PIVOTS] = memory.near.head[PIVOTS] = 0
    reduce_all(comm, bound, stats)
    line.lower_bound = bound[0]
    line.pivots = stats[1]
    estimate(comm, costs, stats[0], state.plan.factor, line)


@njit(**FROM_PYTHON)
def train(comm, work, region, cuts, state, iteration, trace) -> bool:  # type: ignore
    """Run an iteration on preallocated state.

    Parameters
    ----------
    comm : Communicator
        Any backend; all ranks call with equal arguments, except arrays in their own memory.
    work : Work
        `Items.work`, in a new round.
    region, cuts : SharedRegion
        The regions of the rows of `state.memory`, and of the coefficients of `state.pool`.
    state : State
        `pool` must have room for one cut per trajectory and stage.
    iteration : int
        The number of the iteration, from 0.
    trace : ndarray of TRACE, shape (1,)
        Receives the record of the iteration. With shape (0,) nothing is done.

    Returns
    -------
    bool
        False if a stage problem could not be solved; `memory.error` then says which, the same on
        all ranks.
    """
    if trace.size == 0:
        return True
    error, phases, line, start = state.memory.error, state.phases, trace[0], monotonic_ns()
    outer = enter(comm, phases.forward)
    share_trajectories(comm, work, region, state, iteration)
    enter(comm, phases.backward)
    for t in range(state.problem.cost.shape[0] - 1, 0, -1):
        if error[0] == OK:
            line.gain += share_cuts(comm, work, region, cuts, state, t)
    enter(comm, phases.bound)
    if error[0] == OK:
        reduce_bounds(comm, state, line)
    if error[0] == OK and state.plan.ring > 0:
        enter(comm, phases.select)
        # After the collectives of the bound, no rank reads points or cuts any more.
        select_cuts(state)
        fence(cuts)
        count_kept(state.pool.count, state.points.kept)
    enter(comm, outer)
    if error[0] != OK:
        return False
    line.cuts = state.pool.count.sum()
    line.wall_ns = monotonic_ns() - start
    return True
