"""Forward pass: simulate the present policy along a block of trajectories."""

import numpy as np
from compiled import PLAIN
from numba import njit
from simplex.dual import OPTIMAL
from simplex.state import RESULT, Lp, copy_basis, copy_values
from stage.pool import Pool
from stage.problem import Problem
from stage.solve import open_stage, refer_stage, set_point, solve_stage

from training.loop.memory import COST, COUNTED, LEFT, OPENING, STAGE, STATUS, TAIL, State
from training.plan import Block, Plan
from training.sampling import draw_opening, listed_path, uniform


@njit(**PLAIN)
def opening_of(problem: Problem, plan: Plan, iteration: int, m: int, t: int) -> int:
    """Return the opening of trajectory `m` in stage `t`."""
    first = problem.first
    if plan.paths > 0:
        path = listed_path(iteration * plan.trajectories + m, plan.paths, plan.stride, plan.seed)
        for s in range(t):
            path //= first[s + 1] - first[s]
        return first[t] + path % (first[t + 1] - first[t])
    explore = plan.mixed == 1 and m % 2 == 1
    u = uniform(plan.seed, iteration, m, t)
    return draw_opening(problem.weight, first[t], first[t + 1], u, explore)


@njit(**PLAIN)
def weight_of(problem: Problem, plan: Plan, iteration: int, m: int) -> float:
    """Return the weight of the cost of trajectory `m` in the simulated mean.

    Sampled paths count once. Walked paths are visited equally often, so each counts by its
    probability relative to the uniform one. A trajectory that explores has a negative weight, and
    does not count.
    """
    if plan.paths == 0:
        return -1.0 if plan.mixed == 1 and m % 2 == 1 else 1.0
    weight = 1.0
    for t in range(problem.first.size - 1):
        count = problem.first[t + 1] - problem.first[t]
        weight *= problem.weight[opening_of(problem, plan, iteration, m, t)] * count
    return weight


@njit(**PLAIN)
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


@njit(**PLAIN)
def start_block(state: State, iteration: int, block: Block) -> None:
    """Put the trajectories of `block` at the initial volumes, with zero cost."""
    problem, plan, memory = state.problem, state.plan, state.memory
    tail = memory.mine.shape[1] - TAIL
    for i in range(block.end - block.begin):
        record = memory.mine[i]
        copy_values(problem.start, record)
        for j in range(tail, tail + TAIL):
            record[j] = 0.0
        record[tail + COUNTED] = weight_of(problem, plan, iteration, block.begin + i)


@njit(**PLAIN)
def forward_pass(state: State, iteration: int, block: Block) -> None:
    """Simulate the trajectories of `block` into `memory.mine`.

    The reference point of a stage is that of trajectory 0 in the last iteration, which all ranks
    know. A trajectory that cannot go on keeps its outcome, stage and opening.
    """
    problem, pool, plan, memory = state[:4]
    hydros, stages = problem.start.size, problem.cost.shape[0]
    tail = stages * hydros
    lp, mine = memory.lp, memory.mine
    start_block(state, iteration, block)
    for t in range(stages if block.end > block.begin else 0):
        known = memory.trial[0, t * hydros : (t + 1) * hydros]
        refer_stage(memory.reference, problem, pool, t, known, memory.row)
        open_stage(lp, problem, t)
        for i in range(block.end - block.begin):
            if mine[i, tail + STATUS] != OPTIMAL:
                continue
            k = opening_of(problem, plan, iteration, block.begin + i, t)
            copy_basis(memory.reference, lp)
            set_point(lp, mine[i, t * hydros : (t + 1) * hydros], problem.noise[k])
            nxt = mine[i, (t + 1) * hydros : (t + 2) * hydros] if t < stages - 1 else memory.spare
            mine[i, tail + COST] += solve_step(lp, pool, t, memory.row, nxt)
            mine[i, tail + STATUS] = lp.head[RESULT]
            mine[i, tail + STAGE] = t
            mine[i, tail + OPENING] = k - problem.first[t]
            copy_values(lp.measure, mine[i, tail + LEFT :])
