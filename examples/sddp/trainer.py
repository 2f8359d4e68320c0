"""The training loop: one compiled function over any communicator.

Every rank holds the whole cut pool. Per iteration: one allgatherv of trajectories, one allgatherv
of cuts per stage, one allreduce MIN of the bound, one allreduce SUM of two counts, and two exact
sums for the mean and the variance of the simulated cost. What is gathered is ordered by
trajectory, what is reduced by MIN is equal on all ranks, counts are whole numbers, and an exact sum
does not depend on the split over ranks. So every number carries the same bits for every number of
ranks.

Method: M. V. F. Pereira, L. M. V. G. Pinto, Math. Programming 52 (1991) 359.
"""

import math

import numpy as np
from backward import append_news, backward_block, expected_cut, find_distinct
from cobre_kernels.machine.libc import monotonic_ns
from compiled import CALLING, PLAIN
from dual_simplex import OPTIMAL
from forward import forward_pass
from lp_state import PIVOTS as LP_PIVOTS
from lp_state import copy_basis
from numba import njit
from plan import (
    BACKWARD,
    BOUND,
    COMM,
    COST,
    COUNTED,
    CUTS,
    FORWARD,
    GAIN,
    HALF,
    LOWER,
    MEAN,
    OK,
    OPENING,
    PIVOTS,
    STAGE,
    STATUS,
    WALL,
    Memory,
    block_start,
    lay_out,
)
from pool import Pool
from problem import Problem
from stage import open_stage, refer_stage

from cobre_comm import ReduceOp


@njit(**CALLING)
def who_am_i(comm) -> tuple[int, int]:  # type: ignore
    """Return rank and size."""
    return comm.rank, comm.size


@njit(**CALLING)
def gather(comm, send, recv, counts, displs) -> int:  # type: ignore
    """Gather blocks from all ranks; return the nanoseconds it took."""
    clock = monotonic_ns()
    comm.allgatherv(send, recv, counts, displs)
    return monotonic_ns() - clock


@njit(**CALLING)
def reduce_all(comm, bound, stats) -> int:  # type: ignore
    """Reduce bound by MIN and statistics by SUM, in place; return the nanoseconds it took."""
    clock = monotonic_ns()
    comm.allreduce(bound, bound, ReduceOp.MIN)
    comm.allreduce(stats, stats, ReduceOp.SUM)
    return monotonic_ns() - clock


@njit(**CALLING)
def add_up(comm, values) -> tuple[float, int]:  # type: ignore
    """Return the exact sum of all ranks' values, rounded once, and the nanoseconds it took."""
    clock = monotonic_ns()
    total = comm.exact_sum(values)
    return total, monotonic_ns() - clock


@njit(**PLAIN)
def weigh_costs(records: np.ndarray, tail: int, costs: np.ndarray) -> int:
    """Write the weighted costs of those `records` that count to `costs`; return how many."""
    count = 0
    for i in range(records.shape[0]):
        weight = records[i, tail + COUNTED]
        if weight >= 0.0:
            costs[count] = weight * records[i, tail + COST]
            count += 1
    return count


@njit(**PLAIN)
def estimate(comm, costs, count, line) -> int:  # type: ignore
    """Write mean and 95 % half-width of `count` costs, of which `costs` are this rank's.

    Both are made of exact sums, so they are the same however the costs are split over ranks.
    """
    total, clock = add_up(comm, costs)
    line[MEAN] = total / count
    for i in range(costs.size):
        costs[i] = (costs[i] - line[MEAN]) ** 2
    squares, more = add_up(comm, costs)
    line[HALF] = 1.96 * math.sqrt(squares / (count - 1.0) / count) if count > 1.0 else 0.0
    return clock + more


@njit(**PLAIN)
def fail(memory: Memory, phase: int, outcome: int, t: int, opening: int, m: int) -> None:
    """Record the first failure, in trajectory order: the same on all ranks."""
    hydros = memory.error.size - 4
    memory.error[0], memory.error[1] = phase, outcome
    memory.error[2], memory.error[3] = t, opening
    for h in range(hydros):
        memory.error[4 + h] = memory.trial[m, t * hydros + h]


@njit(**PLAIN)
def gather_trajectories(comm, problem, pool, plan, memory, iteration) -> int:  # type: ignore
    """Forward pass and its allgatherv; return nanoseconds in the collective."""
    rank, size = who_am_i(comm)
    begin = block_start(plan.trajectories, rank, size)
    end = block_start(plan.trajectories, rank + 1, size)
    forward_pass(problem, pool, plan, memory, iteration, begin, end)
    lay_out(plan.trajectories, memory.trial.shape[1], memory.counts, memory.displs)
    mine = memory.mine[: end - begin]
    clock = gather(comm, mine, memory.trial, memory.counts, memory.displs)
    tail = problem.cost.shape[0] * problem.start.size
    for m in range(plan.trajectories):
        status = int(memory.trial[m, tail + STATUS])
        if status != OPTIMAL:
            t, k = int(memory.trial[m, tail + STAGE]), int(memory.trial[m, tail + OPENING])
            fail(memory, FORWARD, status, t, k, m)
            break
    return clock


@njit(**PLAIN)
def gather_cuts(comm, problem, pool, memory, t) -> tuple[float, int]:  # type: ignore
    """Backward pass of stage `t`; return the largest rise and nanoseconds in the collective."""
    hydros = problem.start.size
    count = find_distinct(memory, hydros, t)
    rank, size = who_am_i(comm)
    begin = block_start(count, rank, size)
    end = block_start(count, rank + 1, size)
    backward_block(problem, pool, memory, t, begin, end)
    lay_out(count, memory.cuts.shape[1], memory.counts, memory.displs)
    mine = memory.my_cuts[: end - begin]
    clock = gather(comm, mine, memory.cuts, memory.counts, memory.displs)
    for i in range(count):
        status = int(memory.cuts[i, hydros + 1])
        if status != OPTIMAL:
            opening = int(memory.cuts[i, hydros + 2])
            fail(memory, BACKWARD, status, t, opening, memory.distinct[i])
            return 0.0, clock
    return append_news(pool, memory, t, count, hydros), clock


@njit(**PLAIN)
def expected_first_stage(problem: Problem, pool: Pool, memory: Memory) -> float:
    """Return the expected value of stage 0 under the present cuts, on every rank the same."""
    hydros = problem.start.size
    refer_stage(memory.reference, problem, pool, 0, problem.start, memory.row)
    open_stage(memory.lp, problem, 0)
    copy_basis(memory.reference, memory.lp)
    cut = memory.first_cut
    expected_cut(memory.lp, problem, pool, 0, problem.start, memory.row, cut)
    if cut[hydros + 1] != OPTIMAL:
        fail(memory, BOUND, int(cut[hydros + 1]), 0, int(cut[hydros + 2]), 0)
    value = cut[hydros]
    for h in range(hydros):
        value += cut[h] * problem.start[h]
    return value


@njit(**PLAIN)
def reduce_bounds(comm, problem, pool, plan, memory, line) -> int:  # type: ignore
    """Reduce bound and statistics into `line`; return nanoseconds in the collectives."""
    tail = problem.cost.shape[0] * problem.start.size
    bound, stats = memory.bound, memory.stats
    bound[0] = expected_first_stage(problem, pool, memory)
    rank, size = who_am_i(comm)
    begin = block_start(plan.trajectories, rank, size)
    end = block_start(plan.trajectories, rank + 1, size)
    costs = memory.costs[: weigh_costs(memory.mine[: end - begin], tail, memory.costs)]
    stats[0] = costs.size
    stats[1] = memory.lp.head[LP_PIVOTS] + memory.reference.head[LP_PIVOTS]
    clock = reduce_all(comm, bound, stats)
    line[LOWER] = bound[0]
    line[PIVOTS] = stats[1]
    clock += estimate(comm, costs, stats[0], line)
    return clock


@njit(**PLAIN)
def train(comm, problem, pool, plan, memory, first, last, trace) -> int:  # type: ignore
    """Run iterations first..last-1 on preallocated state.

    Parameters
    ----------
    comm : Communicator
        Any backend; all ranks call with equal arguments, `comm` and `memory` apart.
    problem, pool, plan, memory : Problem, Pool, Plan, Memory
        `pool` must have room for one cut per trajectory, stage and iteration.
    first, last : int
        Range of iterations; numbers go on from call to call.
    trace : ndarray of float64, shape (last - first, 8)
        Receives one line per iteration, columns as named in `plan`.

    Returns
    -------
    int
        Iterations done: fewer than asked if a stage problem could not be solved; `memory.error`
        then says which, the same on all ranks.
    """
    stages = problem.cost.shape[0]
    for iteration in range(first, last):
        line = trace[iteration - first]
        line[GAIN] = 0.0
        start = monotonic_ns()
        waited = gather_trajectories(comm, problem, pool, plan, memory, iteration)
        for t in range(stages - 1, 0, -1):
            if memory.error[0] == OK:
                gain, clock = gather_cuts(comm, problem, pool, memory, t)
                line[GAIN] += gain
                waited += clock
        if memory.error[0] == OK:
            waited += reduce_bounds(comm, problem, pool, plan, memory, line)
        if memory.error[0] != OK:
            return iteration - first
        line[CUTS] = pool.count.sum()
        line[WALL] = monotonic_ns() - start
        line[COMM] = waited
    return last - first
