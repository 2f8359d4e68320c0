"""The lines that rank 0 prints: some of the iterations, then a summary."""

import sys
from typing import Any

import numpy as np
from case.data import Case
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn
from training.loop.memory import Phases
from training.run import SAMPLE, Training
from training.stopping import gap_of, is_below_bound

MARKS = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64, 80)
"""Iterations that have a line, up to 99; above that, ten times these numbers, and so on."""

PHASES = "  phase      computing    waiting transferring"
HEADER = (
    "iteration      lower bound       simulated       ± 95 %     cuts   seconds "
    "waiting transferring"
)
"""The last two columns are parts of the time of rank 0 since the line before: in collectives until
the last rank had arrived, and in the rest of the collectives."""


def told_left(seconds: float) -> str:
    """Return as text how long a training still takes: "40 s", "7 min" or "3.2 h"."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


def has_line(iteration: int) -> bool:
    """Return whether the iteration with this number, from 1, has a line."""
    while iteration >= 100 and iteration % 10 == 0:
        iteration //= 10
    return iteration in MARKS


def told_gap(trace: np.ndarray) -> list[str]:
    """Return lines on what the latest sample of fresh paths shows; none if there is no sample."""
    tested = np.flatnonzero(trace["fresh_paths"])
    if not tested.size:
        return []
    line = trace[tested[-1]]
    mean, half_width = line["fresh_mean"], line["fresh_half_width"]
    paths = f"{int(line['fresh_paths'])} fresh paths after iteration {tested[-1] + 1}"
    lines = [f"simulated    {mean:.10g} ± {half_width:.4g} by {paths}"]
    if is_below_bound(line):
        lines.append(
            "gap          unknown: no policy costs less than the lower bound. So few paths have "
            "missed dear ones, or the case or the bound is wrong"
        )
    else:
        lines.append(
            f"gap          at most {gap_of(line):.3g}, at 95 % for all such samples together"
        )
    return lines


class Display:
    """Shows training while it runs; on ranks other than 0 it shows nothing.

    On a terminal, a line at the bottom changes with every iteration. Elsewhere (a pipe, a log) only
    plain lines are printed.
    """

    def __init__(self, comm: Any, limit: int | None) -> None:
        self.comm = comm
        self.active = comm.rank == 0
        self.limit = limit
        self.told = 0.0, 0.0, 0.0  # what `spent` returned at the line before
        self.has_begun = False
        self.elapsed = 0.0
        self.recent = 0.0  # seconds of an iteration: a mean in which the last iterations count most
        self.last = ""
        self.console = Console(highlight=False, soft_wrap=True)
        columns = (TextColumn("{task.description}"), TimeElapsedColumn())
        self.progress = Progress(*columns, console=self.console, transient=True)
        self.live = self.active and self.console.is_terminal

    def __enter__(self) -> "Display":
        """Start the moving line, if there is a terminal for it."""
        if self.live:
            self.task = self.progress.add_task("compiling", total=None)
            self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the moving line, and show the last iteration unless it has been shown."""
        if self.live:
            self.progress.stop()
        if self.active and self.last:
            self.print_line()

    def watch(self, number: int, line: np.void) -> None:
        """Show iteration `number` if it is to have a line; `line` is its record."""
        seconds = line["wall_ns"] * 1e-9
        self.elapsed += seconds
        self.recent = 0.8 * self.recent + 0.2 * seconds if self.recent else seconds
        if not self.active:
            return
        self.last = (
            f"{number:9d} {line['lower_bound']:16.8g} {line['mean']:15.6g} "
            f"{line['half_width']:12.4g} {int(line['cuts']):8d} {self.elapsed:9.3f}"
        )
        to_go = (self.limit or 0) - number
        left = told_left(to_go * self.recent) if to_go * self.recent >= 1.0 else ""
        if self.live:
            of = f" of {self.limit}" if self.limit else ""
            self.progress.update(
                self.task,
                description=f"iteration {number}{of}, bound {line['lower_bound']:.8g}"
                + (f", {told_left(to_go * self.recent)} left" if to_go > 0 else ""),
            )
        if not self.has_begun:
            self.has_begun = True
            self.console.print(HEADER, markup=False)
        if has_line(number):
            self.print_line(f"  {left} left" if left else "")

    def print_line(self, left: str = "") -> None:
        """Print the last iteration's line, with what collectives took since the line before."""
        spent, before = self.spent(), self.told
        waiting, transferring, total = (now - then for now, then in zip(spent, before, strict=True))
        self.told = spent
        # If the iteration comes from a checkpoint, this communicator has spent no time on it.
        parts = f"{waiting / total:7.1%} {transferring / total:12.1%}" if total > 0.0 else ""
        self.console.print(f"{self.last} {parts}{left}".rstrip(), markup=False)
        self.last = ""
        sys.stdout.flush()

    def spent(self) -> tuple[float, float, float]:
        """Return the seconds in all phases until now: waiting, transferring, and all seconds."""
        of_phases = self.comm.stats().phases
        phases = [of_phases[name] for name in (*Phases._fields, SAMPLE) if name in of_phases]
        return (
            sum(each.waiting_s for each in phases),
            sum(each.transferring_s for each in phases),
            sum(each.total_s for each in phases),
        )

    def announce(self, case: Case) -> None:
        """Print the sizes of the case, the backend and the number of ranks."""
        if self.active:
            ranks = self.comm.size
            openings = sum(len(p) for p in case.probabilities)
            buses = f"{len(case.buses)} buses, " if len(case.buses) > 1 else ""
            self.console.print(
                f"{case.name}: {case.stages} stages, {len(case.hydros)} hydros, "
                f"{len(case.thermals)} thermals, {buses}{openings} openings; "
                f"backend {self.comm.backend}, {ranks} rank{'s' if ranks > 1 else ''}",
                markup=False,
            )

    def summarise(self, training: Training) -> None:
        """Print the result, and the optimum that the case file states."""
        if not self.active:
            return
        before = training.resumed_after
        there = f", {before} of them in the checkpoint" if before else ""
        lines = [f"{training.stopped} after {len(training.trace)} iterations{there}"]
        if len(training.trace):
            bound = training.lower_bound[-1]
            lines.append(f"lower bound  {bound:.10g}")
            known = training.case.known
            if known is not None:
                name = "known bound  " if training.case.known_is_bound else "known optimum"
                apart = training.relative_difference
                lines.append(f"{name} {known:.10g}  (relative difference {apart:+.2e})")
        lines += told_gap(training.trace)
        lines.append(f"wall time    {training.wall_s:.3f} s; of rank 0, in seconds:")
        lines.append(PHASES)
        for name, spent in training.phases.items():
            times = spent.computing_s, spent.waiting_s, spent.transferring_s
            lines.append("  {:10} {:9.3f} {:10.3f} {:12.3f}".format(name, *times))
        lines.append(f"cuts sha256  {training.cuts_sha256}")
        self.console.print("\n".join(lines), markup=False)
