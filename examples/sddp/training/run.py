"""Training from Python: one iteration of compiled code at a time, until a rule says stop."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from case.data import Case
from compiled import compiled_by_one
from simplex.dual import INFEASIBLE
from stage.pool import new_pool, pool_digest, with_room
from stage.problem import Problem
from stage.units import Units, choose_units

from training.memory import BACKWARD, FORWARD, TRACE, Memory, State, new_memory
from training.plan import Options, Plan, make_plan
from training.share import load_case, share_problem
from training.stopping import Stopping
from training.trainer import train

Watch = Callable[[np.void], None]
"""Receives the record of every iteration, in the units of the case."""


class StageInfeasible(RuntimeError):
    """A stage problem has no solution, so there is no policy to train (or none was found)."""


@dataclass
class Training:
    """A finished run; `trace` has one record per iteration, in the units of the case."""

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
        return [float(x) for x in self.trace["lower_bound"]]

    @property
    def upper_bound_mean(self) -> list[float]:
        """Mean simulated cost of each iteration."""
        return [float(x) for x in self.trace["mean"]]

    @property
    def upper_bound_half_width(self) -> list[float]:
        """95 % half-width of that mean."""
        return [float(x) for x in self.trace["half_width"]]

    @property
    def comm_s(self) -> float:
        """Seconds this rank spent in collectives of the training loop."""
        return float(self.trace["comm_ns"].sum()) * 1e-9


def failure_of(case: Case, units: Units, memory: Memory) -> StageInfeasible:
    """Return the failure recorded in `memory`, the same on every rank."""
    phase, outcome, t, k = (int(x) for x in memory.error[:4])
    where = {FORWARD: "forward pass", BACKWARD: "backward pass"}.get(phase, "lower bound")
    volumes = memory.error[4:] * units.water
    point = ", ".join(f"{h.name} {v:.6g}" for h, v in zip(case.hydros, volumes, strict=True))
    what = "has no feasible dispatch" if outcome == INFEASIBLE else "could not be solved"
    return StageInfeasible(
        f"{case.name}: stage {t}, opening {k} {what} from incoming volumes {point} ({where})"
    )


def in_case_units(trace: np.ndarray, units: Units) -> np.ndarray:
    """Return `trace` with money in the units of the case."""
    trace = trace.copy()
    for name in ("lower_bound", "mean", "half_width", "gain"):
        trace[name] *= units.money
    return trace


def new_state(problem: Problem, options: Options, ranks: int) -> State:
    """Return the state of one of `ranks` before the first iteration."""
    plan = make_plan(problem, options)
    return State(problem, new_pool(problem, 256), plan, new_memory(problem, plan, ranks))


def iterate(
    case: Case, comm: Any, problem: Problem, units: Units, options: Options, watch: Watch
) -> Training:
    """Train until a rule says stop; `units` are those of `problem`."""
    state = new_state(problem, options, comm.size)
    stopping = Stopping(problem, state.plan, options)
    trace = np.zeros(0, TRACE)
    lines = [trace]
    # No iteration, no communication: compiles, so that the time below is that of training.
    with compiled_by_one():
        train(comm, state, 0, 0, trace)
    start = time.perf_counter()
    while not stopping.reason:
        state = state._replace(pool=with_room(state.pool, state.plan.trajectories))
        line, done = np.zeros(1, TRACE), len(lines) - 1
        if train(comm, state, done, done + 1, line) == 0:
            raise failure_of(case, units, state.memory)
        lines.append(in_case_units(line, units))
        watch(lines[-1][0])
        stopping.note(line[0])
    trace = np.concatenate(lines)
    wall, digest = time.perf_counter() - start, pool_digest(state.pool, units)
    return Training(case, comm.backend, comm.size, state.plan, trace, digest, wall, stopping.reason)


def run_case(
    case: Case, comm: Any, options: Options | None = None, watch: Watch = lambda line: None
) -> Training:
    """Train `case` on all ranks of `comm`, which call this with equal arguments.

    Raises
    ------
    StageInfeasible
        On every rank the same.
    """
    units = choose_units(case)
    problem, region = share_problem(comm, case, units)
    training = iterate(case, comm, problem, units, options or Options(), watch)
    del problem
    region.close()
    return training


def run_training(case_path: str | Path, comm: Any, **options: Any) -> Training:
    """Read the case in `case_path` and train it; `options` as in `Options`."""
    return run_case(load_case(comm, Path(case_path)), comm, Options(**options))
