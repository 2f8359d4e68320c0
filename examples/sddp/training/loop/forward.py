"""Forward pass: simulate the present policy along the trajectories that a rank gets."""

import numpy as np
from compiled import plain
from simplex.dual import OPTIMAL
from simplex.state import RESULT, Lp, copy_basis, copy_values, of_stack
from stage.pool import Pool
from stage.problem import Problem
from stage.solve import refer_stage, set_point, solve_stage

from cobre_comm import random
from training.loop.collectives import claim_group
from training.loop.memory import COST, COUNTED, LEFT, OPENING, STAGE, STATUS, TAIL, State
from training.plan import Plan
from training.sampling import draw_opening, listed_path


@plain
def opening_of(problem: Problem, plan: Plan, iteration: int, m: int, t: int) -> int:
    """Return the opening of trajectory `m` in stage `t`."""
    first = problem.first
    if plan.paths > 0:
        path = listed_path(iteration * plan.trajectories + m, plan.paths, plan.stride, plan.seed)
        for s in range(t):
            path //= first[s + 1] - first[s]
        return first[t] + path % (first[t + 1] - first[t])
    explore = plan.mixed == 1 and m % 2 == 1
    key = random.key(plan.seed, iteration, m, t)
    return draw_opening(problem.weight, first[t], first[t + 1], key, explore)


@plain
def weight_of(problem: Problem, plan: Plan, iteration: int, m: int) -> float:
    """Return the weight of the cost of trajectory `m` in the simulated mean.

    A sampled path counts once. Walked paths are visited equally often, so each path counts by its
    probability, relative to equal probabilities. A trajectory that explores has a negative weight,
    and does not count.
    """
    if plan.paths == 0:
        return -1.0 if plan.mixed == 1 and m % 2 == 1 else 1.0
    weight = 1.0
    for t in range(problem.first.size - 1):
        count = problem.first[t + 1] - problem.first[t]
        weight *= problem.weight[opening_of(problem, plan, iteration, m, t)] * count
    return weight


@plain
def solve_step(lp: Lp, pool: Pool, t: int, row: np.ndarray, point: np.ndarray) -> float:
    """Solve `lp`, write the end volumes to `point`, return the cost of this stage alone."""
    if solve_stage(lp, pool, t, row) != OPTIMAL:
        return 0.0
    hydros = row.size - 1
    for h in range(hydros):
        point[h] = min(max(lp.x[h], lp.lower[h]), lp.upper[h])
    total = 0.0
    for j in range(hydros + 1, lp.cost.size):
        total += lp.cost[j] * lp.x[j]
    return total


@plain
def refer_stages(state: State) -> None:
    """Compute the reference bases of this rank's share of the stages.

    The points of these bases are those of trajectory 0 in the last iteration, which all ranks know.
    So it does not matter which rank of the node computes a basis.
    """
    problem, pool, memory = state.problem, state.pool, state.memory
    for t in range(pool.writer, memory.known.shape[0], pool.writers):
        refer_stage(memory.lp, problem, pool, t, memory.known[t], memory.row)
        copy_basis(memory.lp, of_stack(memory.references, t))


@plain
def start(state: State, iteration: int, m: int) -> None:
    """Put trajectory `m` at the initial volumes, with a cost of zero."""
    problem, plan, memory = state.problem, state.plan, state.memory
    record = memory.trial[m]
    tail = record.size - TAIL
    copy_values(problem.start, record)
    for j in range(tail, record.size):
        record[j] = 0.0
    record[tail + COUNTED] = weight_of(problem, plan, iteration, m)


@plain
def walk(state: State, iteration: int, count: int) -> None:
    """Simulate the first `count` trajectories of `memory.group` into their rows.

    The trajectories go from stage to stage together, because each solve reads all cuts of its
    stage. A trajectory that cannot continue keeps its outcome, stage and opening.
    """
    problem, pool, plan, memory = state[:4]
    hydros, stages = problem.start.size, problem.cost.shape[0]
    tail, lp = stages * hydros, memory.lp
    for i in range(count):
        start(state, iteration, memory.group[i])
    for t in range(stages):
        copy_values(problem.cost[t], lp.cost)
        for i in range(count):
            m = memory.group[i]
            record = memory.trial[m]
            if record[tail + STATUS] != OPTIMAL:
                continue
            k = opening_of(problem, plan, iteration, m, t)
            copy_basis(of_stack(memory.references, t), lp)
            set_point(lp, record[t * hydros : (t + 1) * hydros], problem.noise[k])
            nxt = record[(t + 1) * hydros : (t + 2) * hydros] if t < stages - 1 else memory.spare
            record[tail + COST] += solve_step(lp, pool, t, memory.row, nxt)
            record[tail + STATUS] = lp.head[RESULT]
            record[tail + STAGE] = t
            record[tail + OPENING] = k - problem.first[t]
            copy_values(lp.measure, record[tail + LEFT :])


@plain
def forward_pass(work, state, iteration) -> None:  # type: ignore
    """Simulate the trajectories that this rank gets."""
    memory, stages = state.memory, state.problem.cost.shape[0]
    while True:
        count = claim_group(work, memory.ahead, memory.group, stages, state.pool.writers)
        if count == 0:
            return
        walk(state, iteration, count)
