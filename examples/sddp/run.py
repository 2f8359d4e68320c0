"""Training from Python: one iteration of compiled code at a time, until a rule says stop."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from case import Case
from compiled import one_compiles_first
from dual_simplex import INFEASIBLE
from plan import (
    BACKWARD,
    COMM,
    FORWARD,
    GAIN,
    HALF,
    LOWER,
    MEAN,
    PIVOTS,
    Memory,
    Plan,
    make_plan,
    new_memory,
)
from pool import new_pool, pool_digest, with_room
from problem import Problem, Units, choose_units
from share import load_case, share_problem
from trainer import train

SETTLED = 1e-9
"""An iteration whose cuts rise by less than this part of the bound, in all, found nothing new."""
PATIENCE = 2048
"""Sampled trajectories that must find nothing new before training stops by itself."""
BUDGET = 400_000
"""Stage problems the default number of iterations allows for, within `LEAST` and `MOST`."""
LEAST, MOST = 100, 2000


class StageInfeasible(RuntimeError):
    """A stage problem has no solution, so there is no policy to train (or none was found)."""


@dataclass
class Training:
    """A finished run; `trace` has one line per iteration, columns as in `plan`, case units."""

    case: Case
    backend: str
    ranks: int
    plan: Plan
    trace: np.ndarray
    cuts_sha256: str
    wall_s: float
    stopped: str

    @property
    def lower_bound(self) -> list[float]:
        """Lower bound after each iteration."""
        return [float(x) for x in self.trace[:, LOWER]]

    @property
    def upper_bound_mean(self) -> list[float]:
        """Mean simulated cost of each iteration."""
        return [float(x) for x in self.trace[:, MEAN]]

    @property
    def upper_bound_half_width(self) -> list[float]:
        """95 % half-width of that mean."""
        return [float(x) for x in self.trace[:, HALF]]

    @property
    def comm_s(self) -> float:
        """Seconds this rank spent in collectives of the training loop."""
        return float(self.trace[:, COMM].sum()) * 1e-9


def default_iterations(problem: Problem, plan: Plan) -> int:
    """Return how many iterations a run without `--iterations` may take."""
    solves = plan.trajectories * int(problem.first[-1])
    walk = 10 * plan.paths // plan.trajectories
    return max(walk, min(MOST, max(LEAST, BUDGET // solves)))


class Stopping:
    """When to stop; decided from numbers that are the same on all ranks and for all rank counts.

    A point is settled if the cut computed there does not rise above the pool. If every path of a
    walked tree has been settled since the last rise, the policy is optimal. If paths are sampled,
    `PATIENCE` settled trajectories stop the run, which proves nothing but has not failed.
    """

    def __init__(self, plan: Plan, gap: float | None) -> None:
        self.gap = gap
        self.calm = 0
        self.patience = -(-(plan.paths or PATIENCE) // plan.trajectories)
        self.walked = plan.paths > 0

    def reason(self, line: np.ndarray) -> str:
        """Return why to stop after the iteration described by `line`, or ''."""
        bound = float(line[LOWER])
        self.calm = self.calm + 1 if line[GAIN] <= SETTLED * abs(bound) else 0
        if self.calm >= self.patience:
            return "every path settled" if self.walked else "no new cuts"
        upper = float(line[MEAN] + line[HALF])
        if self.gap is not None and upper - bound <= self.gap * abs(upper):
            return "gap reached"
        return ""


def raise_failure(case: Case, units: Units, memory: Memory) -> None:
    """Raise the failure recorded in `memory`, the same on every rank."""
    phase, outcome, t, k = (int(x) for x in memory.error[:4])
    where = {FORWARD: "forward pass", BACKWARD: "backward pass"}.get(phase, "lower bound")
    volumes = memory.error[4:] * units.water
    point = ", ".join(f"{h.name} {v:.6g}" for h, v in zip(case.hydros, volumes, strict=True))
    what = "has no feasible dispatch" if outcome == INFEASIBLE else "could not be solved"
    raise StageInfeasible(
        f"{case.name}: stage {t}, opening {k} {what} from incoming volumes {point} ({where})"
    )


def in_case_units(trace: np.ndarray, units: Units) -> np.ndarray:
    """Return `trace` with money in the case's units."""
    trace = trace.copy()
    trace[:, [LOWER, MEAN, HALF, GAIN]] *= units.money
    return trace


def run_case(
    case: Case,
    comm: Any,
    iterations: int | None = None,
    trajectories: int | None = None,
    seed: int = 0,
    gap: float | None = None,
    watch: Callable[[np.ndarray], None] = lambda line: None,
) -> Training:
    """Train `case` on all ranks of `comm`, which call this with equal arguments.

    Parameters
    ----------
    iterations : int, optional
        Exactly this many, unless `gap` is reached before; without it, until the case is settled.
    trajectories : int, optional
        Forward trajectories per iteration, over all ranks (default: see `plan.make_plan`).
    gap : float, optional
        Stop when the simulated mean plus its 95 % half-width is this close to the bound,
        relatively.
    watch : callable, optional
        Receives every iteration's line of the trace, in the case's units.

    Raises
    ------
    StageInfeasible
        On every rank the same.
    """
    units = choose_units(case)
    problem, region = share_problem(comm, case, units)
    plan = make_plan(problem, trajectories, seed)
    memory, pool = new_memory(problem, plan, comm.size), new_pool(problem, 256)
    stopping = Stopping(plan, gap)
    limit = default_iterations(problem, plan) if iterations is None else iterations
    lines: list[np.ndarray] = []
    # No iteration, no communication: compiles, so that the time below is that of training.
    with one_compiles_first():
        train(comm, problem, pool, plan, memory, 0, 0, np.zeros((1, PIVOTS + 3)))
    start = time.perf_counter()
    stopped = "iterations done"
    pivots = 0.0
    while len(lines) < limit:
        pool = with_room(pool, plan.trajectories)
        line = np.zeros((1, PIVOTS + 3))
        if train(comm, problem, pool, plan, memory, len(lines), len(lines) + 1, line) == 0:
            raise_failure(case, units, memory)
        line[0, PIVOTS], pivots = line[0, PIVOTS] - pivots, line[0, PIVOTS]
        lines.append(in_case_units(line, units))
        watch(lines[-1][0])
        reason = stopping.reason(line[0])
        if reason and (iterations is None or reason == "gap reached"):
            stopped = reason
            break
    trace = np.concatenate(lines) if lines else np.zeros((0, PIVOTS + 3))
    wall = time.perf_counter() - start
    digest = pool_digest(pool, units)
    del problem
    region.close()
    return Training(case, comm.backend, comm.size, plan, trace, digest, wall, stopped)


def run_training(case_path: str | Path, comm: Any, **options: Any) -> Training:
    """Read the case in `case_path` and train it; `options` as for `run_case`."""
    return run_case(load_case(comm, Path(case_path)), comm, **options)
