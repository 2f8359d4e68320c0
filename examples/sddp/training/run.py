"""Training from Python: one iteration of compiled code at a time, until a rule says stop."""

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from case.data import Case
from compiled import compiled_by_one
from stage.failure import describe_failure
from stage.pool import pool_digest
from stage.units import Units

from cobre_comm import PhaseStats, report_progress
from training.cuts import SharedCuts, SharedPoints
from training.finished import NONE, Finished
from training.items import Items
from training.loop.fresh import no_failure, walk_fresh
from training.loop.memory import BACKWARD, FORWARD, FRESH, TRACE, Memory, Phases, State, new_memory
from training.loop.trainer import train
from training.plan import Options, Plan, make_plan
from training.resume import Standing, find_checkpoint, load_checkpoint, save_checkpoint
from training.sample import draw_sample, sample_number
from training.share import Setting, UsageError, load_case, shared_setting
from training.stopping import Stopping

Watch = Callable[[int, np.void], None]
"""Receives the number of every iteration, and its record, in the units of the case."""


MONEY = "lower_bound", "mean", "half_width", "gain", "fresh_mean", "fresh_half_width"
"""Fields of a record of the trace that are money."""

REPORTED = {
    "lower_bound": "lower bound of the cost",
    "mean": "simulated cost",
    "half_width": "± 95 %",
    "cuts": "cuts",
}
"""What `cobre-comm status` shows of an iteration; names with the same end share a chart."""

SAMPLE = "simulate"
"""The phase of fresh paths."""


class StageInfeasible(RuntimeError):
    """A stage problem has no solution, or no solution was found, so no policy can be trained."""


@dataclass
class Training:
    """A finished training; `trace` has one record per iteration, in the units of the case."""

    case: Case
    backend: str
    ranks: int
    plan: Plan
    trace: np.ndarray
    cuts_sha256: str
    wall_s: float
    stopped: str
    resumed_after: int  # how many iterations the checkpoint had
    phases: Mapping[str, PhaseStats]  # the phases of this rank

    @property
    def lower_bound(self) -> list[float]:
        """The lower bound after each iteration."""
        return [float(x) for x in self.trace["lower_bound"]]

    @property
    def upper_bound_mean(self) -> list[float]:
        """The mean simulated cost of each iteration."""
        return [float(x) for x in self.trace["mean"]]

    @property
    def upper_bound_half_width(self) -> list[float]:
        """The 95 % half-width of `upper_bound_mean`; NaN if a single cost counts."""
        return [float(x) for x in self.trace["half_width"]]

    @property
    def relative_difference(self) -> float | None:
        """The lower bound minus the known optimum, relative to the optimum, or None."""
        known, bounds = self.case.known, self.lower_bound
        if known is None or not bounds:
            return None
        return (bounds[-1] - known) / max(abs(known), 1e-300) if bounds[-1] != known else 0.0

    @property
    def waiting_s(self) -> float:
        """The seconds of this rank in the phases' collectives, until the last rank had arrived."""
        return sum(spent.waiting_s for spent in self.phases.values())

    @property
    def transferring_s(self) -> float:
        """The seconds of this rank in the phases' collectives, after the last rank had arrived."""
        return sum(spent.transferring_s for spent in self.phases.values())


def failure_of(case: Case, units: Units, memory: Memory) -> StageInfeasible:
    """Return the failure that `memory` has recorded, the same on every rank."""
    phase, outcome, t, k = (int(x) for x in memory.error[:4])
    names = {FORWARD: "forward pass", BACKWARD: "backward pass", FRESH: "fresh paths"}
    where = names.get(phase, "lower bound")
    volumes = memory.error[4:] * units.water
    point = ", ".join(f"{h.name} {v:.6g}" for h, v in zip(case.hydros, volumes, strict=True))
    what, rest = describe_failure(outcome, memory.left)
    return StageInfeasible(
        f"{case.name}: stage {t}, opening {k} {what} from incoming volumes {point} ({where}){rest}"
    )


def in_case_units(trace: np.ndarray, units: Units) -> np.ndarray:
    """Return `trace` with money in the units of the case."""
    trace = trace.copy()
    for name in MONEY:
        trace[name] *= units.money
    return trace


class Run:
    """A training, between two iterations.

    All ranks create it, call its methods and close it together.
    """

    def __init__(self, setting: Setting, options: Options) -> None:
        self.setting, self.options = setting, options
        problem = setting.problem
        self.plan = make_plan(problem, options)
        self.stopping = Stopping(problem, self.plan, options)
        self.trace = np.zeros(0, TRACE)  # in scaled units
        self.resumed_after = 0
        self.cuts = SharedCuts(setting)
        self.items = items = Items(setting.comm, problem, self.plan)
        self.memory = new_memory(problem, self.plan, items.shared, items.spans)
        self.points = SharedPoints(setting, self.plan, items.shared.kept)
        names = Phases._fields if self.plan.ring else Phases._fields[:-1]
        self.phases = Phases(**{"select": 0, **{n: setting.comm.phase_number(n) for n in names}})
        self.reference = self.memory.known

    def resume(self, watch: Watch) -> None:
        """Continue from the checkpoint, if there is one; `watch` gets its iterations, too."""
        path = self.options.checkpoint
        header = None if path is None else find_checkpoint(self.setting, path, self.plan)
        if header is None or path is None:
            return
        standing = load_checkpoint(self.setting, path, header, self.cuts, self.points)
        self.reference[:] = standing.reference
        self.resumed_after = header.iterations
        for line in standing.trace:
            if self.stopping.left == 0:
                raise UsageError(
                    f"the checkpoint {path} has {header.iterations} iterations, more than are "
                    f"asked for; ask for at least as many, or name another file"
                )
            self.note(line, watch)

    def take_over(self, finished: Finished, number: int) -> None:
        """Continue after the first `number` iterations, finished on an earlier communicator."""
        if self.plan.ring:
            raise ValueError("what outlives a loss is all cuts: pass Options(select=False)")
        after = finished.after(number)
        self.cuts.take_over(finished.rows, after.counts)
        self.reference[:] = after.reference
        self.resumed_after = finished.resumed_after
        for line in finished.trace[:number]:
            self.note(line, lambda *_: None)

    def note(self, line: np.void, watch: Watch) -> None:
        """Add a finished iteration to the trace, and pass it to `watch` and the stopping rules."""
        self.trace = np.append(self.trace, line)
        told = in_case_units(line, self.setting.units)
        if not (np.isfinite(told["lower_bound"]) and np.isfinite(told["mean"])):
            raise StageInfeasible(
                f"{self.setting.case.name}: the bounds of iteration {len(self.trace)} are no "
                f"finite numbers, as those of the case differ too much in size"
            )
        watch(len(self.trace), told)
        self.stopping.note(line)

    def advance(self, watch: Watch) -> None:
        """Do one iteration."""
        self.cuts.make_room(self.plan.trajectories)
        self.points.make_room(self.cuts.pool)
        self.items.begin()
        line = np.zeros(1, TRACE)
        if not (self.train(line) and self.sample(line)):
            raise failure_of(self.setting.case, self.setting.units, self.memory)
        self.note(line[0], watch)
        # for `cobre-comm status`; the numbers are equal on all ranks
        if self.setting.comm.rank == 0:
            done = in_case_units(line, self.setting.units)[0]
            report_progress({said: done[name] for name, said in REPORTED.items()})

    def state(self) -> State:
        """Return the data of the training in the form that compiled code takes."""
        return State(
            self.setting.problem, self.cuts.pool, self.plan, self.memory, self.phases,
            self.points.points,
        )  # fmt: skip

    def arguments(self, trace: np.ndarray) -> tuple[Any, ...]:
        """Return the arguments of the compiled iteration."""
        comm, items, cuts = self.setting.comm, self.items, self.cuts.memory.region
        return comm, items.work, items.region, cuts, self.state(), len(self.trace), trace

    def train(self, trace: np.ndarray) -> bool:
        """Call the compiled iteration."""
        return bool(train(*self.arguments(trace)))

    def sample(self, trace: np.ndarray) -> bool:
        """Simulate fresh paths if a sample is due; write its results to the iteration's record."""
        number = sample_number(len(self.trace) + 1)
        if self.options.gap is None or number == 0:
            return True
        start = time.perf_counter_ns()
        with self.setting.comm.phase(SAMPLE):
            went_on = draw_sample(self, number, trace)
        trace["wall_ns"] += time.perf_counter_ns() - start
        return went_on

    def compile(self) -> None:
        """Call the compiled functions without doing an iteration, and so without communication."""
        self.train(self.trace[:0])
        if self.options.gap is not None:
            none = np.zeros((0, self.setting.problem.start.size))
            walk_fresh(self.state(), 0, 0, none, none[:, 0], no_failure(none.shape[1]))

    def save(self) -> None:
        """Write the checkpoint, if there is one and it is due."""
        path, due = self.options.checkpoint, len(self.trace) % self.options.checkpoint_every == 0
        if path is not None and (due or self.stopping.reason):
            standing = Standing(self.trace, self.reference)
            save_checkpoint(self.setting, path, self.plan, self.cuts, self.points, standing)

    def close(self) -> None:
        """Close the work and the shared regions."""
        self.cuts.close()
        self.points.close()
        self.items.close()


def iterate(run: Run, watch: Watch, finished: Finished) -> Training:
    """Train until a rule says stop; keep in `finished` what is needed after the loss of a rank."""
    setting, number = run.setting, finished.agree(run.setting.comm)
    if number == NONE:
        run.resume(watch)
    else:
        run.take_over(finished, number)
    finished.keep(run)
    with compiled_by_one():  # so that the time measured below is that of training
        run.compile()
    setting.comm.barrier()  # ranks load compiled code at different times
    start, limit = time.perf_counter(), run.options.time_limit
    finished.seconds()
    while not run.stopping.reason:
        run.advance(watch)
        finished.keep(run)
        if setting.comm.stop_requested():
            run.stopping.reason = "stop requested"
        elif limit is not None and setting.comm.max(finished.seconds()) >= limit:
            run.stopping.reason = run.stopping.reason or "time limit"
        run.save()
    wall, phases = time.perf_counter() - start, setting.comm.stats().phases
    return Training(
        case=setting.case,
        backend=setting.comm.backend,
        ranks=setting.comm.size,
        plan=run.plan,
        trace=in_case_units(run.trace, setting.units),
        cuts_sha256=pool_digest(run.cuts.pool, setting.units),
        wall_s=wall,
        stopped=run.stopping.reason,
        resumed_after=run.resumed_after,
        phases={name: phases[name] for name in (*Phases._fields, SAMPLE) if name in phases},
    )


def run_case(
    case: Case,
    comm: Any,
    options: Options | None = None,
    watch: Watch = lambda number, line: None,
    finished: Finished | None = None,
) -> Training:
    """Train `case` on all ranks of `comm`, which call this with equal arguments.

    After the loss of a rank, the survivors call this again with the same `finished`, and so redo
    the iteration that was cut short. For that the training must keep all cuts (`select=False`).

    Raises
    ------
    StageInfeasible
        On every rank the same.
    UsageError
        On every rank the same, if the checkpoint does not serve or cannot be written.
    """
    with (
        shared_setting(comm, case) as setting,
        contextlib.closing(Run(setting, options or Options())) as run,
    ):
        return iterate(run, watch, finished or Finished())


def run_training(case_path: str | Path, comm: Any, **options: Any) -> Training:
    """Read the case in `case_path` and train it; `options` are the fields of `Options`."""
    return run_case(load_case(comm, Path(case_path)), comm, Options(**options))
