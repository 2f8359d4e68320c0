"""The policy in use: one compiled function walks a block of scenarios, stage by stage."""

from typing import NamedTuple

import numpy as np
from compiled import FROM_PYTHON, plain
from numba import njit
from simplex.dual import OPTIMAL
from simplex.state import MEASURES, RESULT, Lp, copy_basis, copy_values
from stage.pool import Pool
from stage.problem import Problem
from stage.solve import new_program, open_stage, refer_stage, set_point, solve_stage

COST, STATUS, LEFT = 0, 1, 2
DECISION = LEFT + MEASURES
"""Fields of a record: the cost of the stage alone; the outcome; the errors of its solution
(`Lp.measure`); then every variable of the stage problem, end volumes first; then the price of
energy at each bus."""


class Desk(NamedTuple):
    """The arrays with which one rank makes the decisions of a stage."""

    problem: Problem
    pool: Pool
    lp: Lp
    basis: Lp
    row: np.ndarray  # (H + 1,) work space
    volume: np.ndarray  # (H,) work space: incoming volumes
    reference: np.ndarray  # (T, H) incoming volumes at which reference bases are computed


def new_desk(problem: Problem, pool: Pool, reference: np.ndarray) -> Desk:
    """Return the arrays of one rank."""
    hydros = problem.start.size
    lp, basis = new_program(problem), new_program(problem)
    return Desk(problem, pool, lp, basis, np.zeros(hydros + 1), np.zeros(hydros), reference)


@plain
def record_stage(lp: Lp, hydros: int, record: np.ndarray) -> None:
    """Write the solution in `lp` to `record`; volumes are clipped to their bounds."""
    prices = DECISION + lp.cost.size
    for j in range(lp.cost.size):
        record[DECISION + j] = lp.x[j]
    for h in range(hydros):
        record[DECISION + h] = min(max(lp.x[h], lp.lower[h]), lp.upper[h])
    record[COST] = 0.0
    for j in range(hydros + 1, lp.cost.size):
        record[COST] += lp.cost[j] * lp.x[j]
    for b in range(record.size - prices):
        record[prices + b] = lp.y[hydros + b]


@njit(**FROM_PYTHON)
def walk_block(desk: Desk, noise: np.ndarray, records: np.ndarray) -> None:
    """Decide every stage of the scenarios in `noise` (n, T, H + B); write to `records`.

    Each decision starts from the reference basis of its stage, which is the same on all ranks. So a
    record does not depend on the rank that walks it. A scenario that cannot continue keeps the
    outcome of its last stage.
    """
    problem, pool, lp, basis, row, volume, reference = desk
    hydros = problem.start.size
    for t in range(problem.cost.shape[0] if noise.shape[0] else 0):
        refer_stage(basis, problem, pool, t, reference[t], row)
        open_stage(lp, problem, t)
        for i in range(noise.shape[0]):
            copy_values(problem.start, volume)
            if t > 0:
                records[i, t, STATUS] = records[i, t - 1, STATUS]
                copy_values(records[i, t - 1, DECISION : DECISION + hydros], volume)
            if records[i, t, STATUS] != OPTIMAL:
                continue
            copy_basis(basis, lp)
            set_point(lp, volume, noise[i, t])
            solve_stage(lp, pool, t, row)
            records[i, t, STATUS] = lp.head[RESULT]
            copy_values(lp.measure, records[i, t, LEFT:])
            record_stage(lp, hydros, records[i, t])
