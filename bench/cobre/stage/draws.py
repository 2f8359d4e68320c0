"""One stage problem at many points: solved as in a training, and written for other solvers."""

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit

sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "sddp"))

from case.data import Case
from case.random_case import Shape, generate
from case.read import parse_case
from compiled import FROM_PYTHON
from simplex.dual import OPTIMAL
from simplex.state import PIVOTS, Lp, copy_basis, copy_values, sparse
from simulation.dispatch import DECISION, STATUS, new_desk, walk_block
from stage.pool import Pool
from stage.problem import Problem
from stage.solve import new_program, refer_stage, set_point, solve_stage, write_row
from training.plan import Options
from training.run import Run
from training.share import shared_setting

SEED, OPENINGS = 1, 20
UNCACHED = FROM_PYTHON | {"cache": False}  # numba's cache would not notice changes of the example


def random_case(hydros: int, stages: int) -> Case:
    """Return the random case of this size."""
    shape = Shape(hydros, max(3, hydros * 5 // 8), stages, OPENINGS)
    return parse_case(json.dumps(generate(shape, SEED)).encode(), "case.json")


class Stage(NamedTuple):
    """A stage of a trained policy."""

    problem: Problem
    pool: Pool
    t: int
    points: np.ndarray  # (count, H) incoming volumes that scenarios have under the policy

    def cuts(self) -> int:
        """Return how many cuts the stage has."""
        return int(self.pool.count[self.t])

    def with_cuts(self, count: int) -> "Stage":
        """Return the stage with its first `count` cuts."""
        return self._replace(pool=self.pool._replace(count=np.full_like(self.pool.count, count)))


@contextlib.contextmanager
def middle_stage(comm: Any, case: Case, count: int, options: Options, cuts: int) -> Iterator[Stage]:
    """Give the stage in the middle of a case, with `count` points and `cuts` cuts of a training.

    If `options` say so, the training ends earlier, with fewer cuts.
    """
    t = case.stages // 2
    with shared_setting(comm, case) as setting, contextlib.closing(Run(setting, options)) as run:
        while run.cuts.pool.count[t] < cuts and not run.stopping.reason:
            run.advance(lambda number, line: None)
        problem, pool = setting.problem, run.cuts.pool
        rng = np.random.default_rng(SEED)
        drawn = [rng.integers(*problem.first[s : s + 2], count) for s in range(case.stages)]
        noise = np.array(problem.noise)[np.array(drawn).T]
        width = DECISION + problem.cost.shape[1] + len(case.buses)
        records = np.zeros((count, case.stages, width))
        walk_block(new_desk(problem, pool, run.reference), noise, records)
        assert np.all(records[:, :, STATUS] == OPTIMAL)
        points = records[:, t - 1, DECISION : DECISION + problem.start.size].copy()
        yield Stage(problem, pool, t, points)


@njit(**UNCACHED)
def walk_draws(near: Lp, lp: Lp, stage: Stage, row: np.ndarray, values: np.ndarray) -> bool:
    """Solve `stage` at each point under its openings, as the backward pass of a training does."""
    problem, pool, t, points = stage
    refer_stage(near, problem, pool, t, points[0], row)
    copy_values(problem.cost[t], lp.cost)
    n = 0
    for i in range(points.shape[0]):
        copy_basis(near, lp)
        for p in range(problem.first[t], problem.first[t + 1]):
            set_point(lp, points[i], problem.noise[problem.order[p]])
            if solve_stage(lp, pool, t, row) != OPTIMAL:
                return False
            values[n] = lp.base[0]
            n += 1
    return True


class Solved(NamedTuple):
    """The objectives of all draws, and what it took to solve the draws."""

    values: np.ndarray  # objectives in scaled units, by draw
    seconds: float  # CPU seconds of the thread
    pivots: int


def solve_draws(stage: Stage) -> Solved:
    """Solve all draws of `stage` by our solver, in one compiled loop."""
    near, lp = new_program(stage.problem), new_program(stage.problem)
    row, values = np.zeros(stage.problem.start.size + 1), np.zeros(len(levels(stage)))
    walk_draws(near, lp, stage._replace(points=stage.points[:1]), row, values)  # this call compiles
    lp.head[PIVOTS] = 0
    begin = time.thread_time()
    solved = walk_draws(near, lp, stage, row, values)
    seconds = time.thread_time() - begin
    assert solved
    return Solved(values, seconds, int(lp.head[PIVOTS]))


def levels(stage: Stage) -> np.ndarray:
    """Return the right-hand sides of the base rows, by draw."""
    problem, t = stage.problem, stage.t
    noise = np.array(problem.noise)[problem.order[problem.first[t] : problem.first[t + 1]]]
    incoming = np.pad(stage.points, ((0, 0), (0, 1)))
    return (incoming[:, None, :] + noise[None, :, :]).reshape(-1, noise.shape[1])


@njit(**UNCACHED)
def write_rows(pool: Pool, t: int, rows: np.ndarray, low: np.ndarray) -> None:
    """Write each cut of stage `t` as the row that the solver makes of the cut."""
    for c in range(low.size):
        low[c] = write_row(pool, t, c, rows[c])


class Program(NamedTuple):
    """A stage problem at all its draws, in scaled units."""

    sizes: np.ndarray  # columns, base rows, entries of these, H, cuts, openings, draws
    cost: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    start: np.ndarray  # entries of base row i are start[i]:start[i + 1]
    index: np.ndarray
    value: np.ndarray
    low: np.ndarray  # (cuts,) cut c says  low[c] <= rows[c] . (volumes, theta)
    rows: np.ndarray  # (cuts, H + 1)
    coef: np.ndarray  # (H + 1, cuts) the same cuts as in the pool
    level: np.ndarray  # (draws, base rows) right-hand sides


def program_of(stage: Stage) -> Program:
    """Return `stage` in the form that `highs.c` takes."""
    problem, pool, t = stage[:3]
    hydros, cuts = problem.start.size, stage.cuts()
    assert t < problem.cost.shape[0] - 1  # in the last stage alone, the cost to go is bounded above
    base, level = sparse(problem.a), levels(stage)
    rows, low = np.zeros((cuts, hydros + 1)), np.zeros(cuts)
    write_rows(pool, t, rows, low)
    openings = len(level) // len(stage.points)
    sizes = *problem.a.shape[::-1], base.value.size, hydros, cuts, openings, len(level)
    sizes, first, index = (np.array(each, np.int32) for each in (sizes, base.first, base.index))
    return Program(
        sizes, problem.cost[t], problem.lower[t], problem.upper[t], first, index, base.value,
        low, rows, pool.coef[t, :, :cuts], level,
    )  # fmt: skip


def write_program(program: Program, path: Path) -> None:
    """Write the arrays of `program` one after another."""
    with path.open("wb") as file:
        for array in program:
            file.write(np.ascontiguousarray(array).tobytes())
