"""The training loop: one compiled function over any communicator.

Every node holds the whole cut pool. An iteration has one allgatherv of trajectories, and for each
stage one allgatherv of cuts and one fence. Then come one allreduce MIN of the bound and one
allreduce SUM of two counts. Two exact sums give the mean and the variance of the simulated cost.
Gathered data are ordered by trajectory, and the bounds reduced by MIN are equal on all ranks.
Counts are whole numbers, and an exact sum does not depend on the split over ranks. So every number
has the same bits for every number of ranks.

Method: M. V. F. Pereira, L. M. V. G. Pinto, Math. Programming 52 (1991) 359.
"""

import numpy as np
from cobre_kernels.machine.libc import monotonic_ns
from compiled import FROM_PYTHON, PLAIN
from numba import njit
from simplex.dual import OPTIMAL
from simplex.state import PIVOTS, copy_values

from training.loop.backward import (
    backward_block,
    choose_rising,
    expected_cut,
    find_distinct,
    refer_basis,
    value_at,
    write_rising,
)
from training.loop.collectives import enter, estimate, fence, gather, my_block, reduce_all
from training.loop.forward import forward_pass
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
from training.plan import lay_out


@njit(**PLAIN)
def fail(
    memory: Memory, phase: int, outcome: int, t: int, opening: int, m: int, left: np.ndarray
) -> None:
    """Record a failure, which is the first in trajectory order and the same on all ranks."""
    hydros = memory.error.size - 4
    memory.error[0], memory.error[1] = phase, outcome
    copy_values(left, memory.left)
    memory.error[2], memory.error[3] = t, opening
    for h in range(hydros):
        memory.error[4 + h] = memory.trial[m, t * hydros + h]


@njit(**PLAIN)
def gather_trajectories(comm, state, iteration) -> int:  # type: ignore
    """Do the forward pass and its allgatherv; return the nanoseconds in the collective."""
    memory, items = state.memory, state.plan.trajectories
    block = my_block(comm, items)
    forward_pass(state, iteration, block)
    lay_out(items, memory.trial.shape[1], memory.counts, memory.displs)
    mine = memory.mine[: block.end - block.begin]
    clock = gather(comm, mine, memory.trial, memory.counts, memory.displs)
    tail = memory.trial.shape[1] - TAIL
    for m in range(items):
        status = int(memory.trial[m, tail + STATUS])
        if status != OPTIMAL:
            t, k = int(memory.trial[m, tail + STAGE]), int(memory.trial[m, tail + OPENING])
            fail(memory, FORWARD, status, t, k, m, memory.trial[m, tail + LEFT :])
            break
    return clock


@njit(**PLAIN)
def gather_cuts(comm, region, state, t) -> tuple[float, int]:  # type: ignore
    """Do the backward pass of stage `t`; return the largest rise and nanoseconds in collectives.

    A rank computes its cuts in place, in its rows of `memory.cuts`. The fence ends the reading of
    these rows too: the ranks of the node may then write those of the next stage.
    """
    memory, hydros = state.memory, state.problem.start.size
    count = find_distinct(memory, hydros, t)
    block = my_block(comm, count)
    backward_block(state, t, block)
    lay_out(count, memory.cuts.shape[1], memory.counts, memory.displs)
    mine = memory.cuts[block.begin : block.end]
    clock = gather(comm, mine, memory.cuts, memory.counts, memory.displs)
    for i in range(count):
        status = int(memory.cuts[i, hydros + OUTCOME])
        if status != OPTIMAL:
            opening = int(memory.cuts[i, hydros + FAILED_AT])
            left = memory.cuts[i, hydros + CUT_LEFT :]
            fail(memory, BACKWARD, status, t, opening, memory.distinct[i], left)
            return 0.0, clock
    chosen, gain = choose_rising(state, t, count)
    write_rising(state, t, chosen)
    return gain, clock + fence(region)


@njit(**PLAIN)
def expected_first_stage(state: State) -> float:
    """Return the expected value of stage 0 under the present cuts, on every rank the same."""
    start, cut = state.problem.start, state.memory.first_cut
    hydros = start.size
    refer_basis(state, 0, start)
    expected_cut(state, 0, start, cut)
    if cut[hydros + OUTCOME] != OPTIMAL:
        status, opening = int(cut[hydros + OUTCOME]), int(cut[hydros + FAILED_AT])
        fail(state.memory, BOUND, status, 0, opening, 0, cut[hydros + CUT_LEFT :])
    return value_at(cut, start)


@njit(**PLAIN)
def weigh_costs(records: np.ndarray, costs: np.ndarray) -> int:
    """Write the weighted costs of the `records` that count to `costs`; return their number."""
    tail, count = records.shape[1] - TAIL, 0
    for i in range(records.shape[0]):
        weight = records[i, tail + COUNTED]
        if weight >= 0.0:
            costs[count] = weight * records[i, tail + COST]
            count += 1
    return count


@njit(**PLAIN)
def reduce_bounds(comm, state, line) -> int:  # type: ignore
    """Reduce bound and statistics into `line`; return nanoseconds in the collectives."""
    memory = state.memory
    bound, stats = memory.bound, memory.stats
    bound[0] = expected_first_stage(state)
    block = my_block(comm, state.plan.trajectories)
    count = weigh_costs(memory.mine[: block.end - block.begin], memory.costs)
    costs = memory.costs[:count]
    stats[0] = count
    stats[1] = memory.lp.head[PIVOTS] + memory.reference.head[PIVOTS]
    memory.lp.head[PIVOTS] = memory.reference.head[PIVOTS] = 0
    clock = reduce_all(comm, bound, stats)
    line.lower_bound = bound[0]
    line.pivots = stats[1]
    return clock + estimate(comm, costs, stats[0], line)


@njit(**FROM_PYTHON)
def train(comm, region, state, first, last, trace) -> int:  # type: ignore
    """Run iterations first..last-1 on preallocated state.

    Parameters
    ----------
    comm : Communicator
        Any backend; all ranks call with equal arguments, `comm` and `state.memory` apart.
    region : SharedRegion
        Where the coefficients of `state.pool` lie.
    state : State
        `pool` must have room for one cut per trajectory, stage and iteration.
    first, last : int
        Range of iterations; numbers go on from call to call.
    trace : ndarray of TRACE, shape (last - first,)
        Receives one record per iteration.

    Returns
    -------
    int
        Iterations done: fewer than asked if a stage problem could not be solved; `memory.error`
        then says which, the same on all ranks.
    """
    error, phases = state.memory.error, state.phases
    for iteration in range(first, last):
        line, start = trace[iteration - first], monotonic_ns()
        outer = enter(comm, phases.forward)
        waited = gather_trajectories(comm, state, iteration)
        enter(comm, phases.backward)
        for t in range(state.problem.cost.shape[0] - 1, 0, -1):
            if error[0] == OK:
                gain, clock = gather_cuts(comm, region, state, t)
                line.gain += gain
                waited += clock
        enter(comm, phases.bound)
        if error[0] == OK:
            waited += reduce_bounds(comm, state, line)
        enter(comm, outer)
        if error[0] != OK:
            return iteration - first
        line.cuts = state.pool.count.sum()
        line.wall_ns, line.comm_ns = monotonic_ns() - start, waited
    return last - first
