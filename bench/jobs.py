"""Jobs of ranks: one for each number of ranks and library, started when its first figure is asked.

A job takes all measurements of its figures that pytest selected, so a session starts it once. Jobs
do not overlap: a rank of MPI that waits keeps a core busy.
"""

from __future__ import annotations

import faulthandler
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from measurements import GLOO, Entry, Figure, Job, Measurement
from mpi_start import command, environment
from recording import ratios
from tcp_gloo import group_environment

RANK = Path(__file__).with_name("collectives_rank.py")
DEADLINE_S = {False: 900, True: 7200}  # of a job: essentials, --full
MOST_S = {False: 8.0, True: 30.0}  # of the blocks of a measurement
LINES_SHOWN = 40


class JobFailed(Exception):
    """The ranks of a job did not give results; the message ends with their output."""


class Jobs:
    """The jobs of a session and what they measured.

    Parameters
    ----------
    figures : iterable of Figure
        What was selected, in order.
    rounds, block_s, full
        The options of the same name.
    say : callable
        Gets a line when a job starts.
    """

    def __init__(
        self,
        figures: Iterable[Figure],
        rounds: int,
        block_s: float,
        full: bool,
        say: Callable[[str], None],
    ) -> None:
        self._plans: dict[Job, dict[Measurement, None]] = {}
        for figure in figures:
            self._plans.setdefault(figure.job, {})[figure.measurement] = None
        self._results: dict[Job, dict | JobFailed] = {}
        self._rounds, self._block_s, self._full, self._say = rounds, block_s, full, say

    def has(self, figure: Figure) -> bool:
        """Tell whether the figure's measurement was selected and went well."""
        if figure.measurement not in self._plans.get(figure.job, {}):
            return False
        result = self._outcome(figure.job)
        return not isinstance(result, JobFailed) and not self._part(result, figure)["error"]

    def samples(self, figure: Figure) -> list[float]:
        """Return the seconds per call of the figure's blocks."""
        return self._of(figure)["samples_s"][figure.measurement.entries.index(figure.entry)]

    def told(self, figure: Figure) -> dict:
        """Return all arguments of ``recording.record`` for a figure."""
        job, entry = figure.job, figure.entry
        taken = self._of(figure)
        index = figure.measurement.entries.index(entry)
        result = self._result(job)
        told = {
            "samples_s": self.samples(figure),
            "label": entry.case.label,
            "operation": figure.operation,
            "ranks": job.ranks,
            "beside": job.library if job.library != GLOO else None,
            "side": job.side_name(entry),
            "backend": entry.side if entry.is_ours else None,
            "bytes": figure.sent_bytes,
            "moved_bytes": figure.received_bytes,
            "block_calls": taken["block_calls"][index],
            "p99_of": "blocks of block_calls calls each",
            "library": result["library"],
            "load_before": result["load_before"],
        }
        if "single" in taken:
            told |= taken["single"][index]
        return told | (self._ratios(figure) if entry.is_ours else {})

    def _ratios(self, figure: Figure) -> dict:
        """Ratios to the other sides of the same operation; and to gloo, of another job."""
        ours = self.samples(figure)
        made = {}
        for other in figure.measurement.entries:
            if not other.is_ours and other.case == figure.entry.case:
                beside = self.samples(Figure(figure.job, figure.measurement, other))
                made[figure.job.side_name(other)] = ratios(ours, beside)
        gloo = gloo_figure(figure)
        if figure.entry.side == "shm" and figure.job.library == "openmpi" and self.has(gloo):
            made["gloo"] = apart(ours, self.samples(gloo))
            return {"ratio_to": made, "measured_apart": ["gloo"]}
        return {"ratio_to": made}

    def _of(self, figure: Figure) -> dict:
        result = self._result(figure.job)
        taken = self._part(result, figure)
        if taken["error"]:
            pytest.fail(f"{figure.id}: {taken['error']}\n{result['output']}", pytrace=False)
        return taken

    def _part(self, result: dict, figure: Figure) -> dict:
        """Return what a job's results say of a figure's measurement."""
        return result["measurements"][list(self._plans[figure.job]).index(figure.measurement)]

    def _result(self, job: Job) -> dict:
        result = self._outcome(job)
        if isinstance(result, JobFailed):
            pytest.fail(str(result), pytrace=False)
        return result

    def _outcome(self, job: Job) -> dict | JobFailed:
        if job not in self._results:
            try:
                self._results[job] = self._run(job)
            except JobFailed as failed:
                self._results[job] = failed
        return self._results[job]

    def _run(self, job: Job) -> dict:
        faulthandler.cancel_dump_traceback_later()  # a job takes longer than a test may
        measurements = list(self._plans[job])
        plan = {
            "library": job.library,
            "rounds": self._rounds,
            "block_s": self._block_s,
            "most_s": MOST_S[self._full],
            "measurements": [measurement.to_json() for measurement in measurements],
        }
        self._say(f"{job.ranks} ranks beside {job.library}: {len(measurements)} measurements")
        load = os.getloadavg()[0]
        with tempfile.TemporaryDirectory(prefix="cobre-bench-") as folder:
            written = Path(folder, "plan.json")
            written.write_text(json.dumps(plan))
            found, output = run_ranks(job, written, DEADLINE_S[self._full])
        return {**found, "load_before": load, "output": output}


def run_ranks(job: Job, plan: Path, deadline_s: float) -> tuple[dict, str]:
    """Start the ranks and wait for them; return their results and what they printed last."""
    results, log = plan.with_name("results.json"), plan.with_name("output")
    words = [sys.executable, str(RANK), str(plan), str(results)]
    with log.open("wb") as out:
        starts = starts_of(job, words)
        running = [subprocess.Popen(w, env=env, stdout=out, stderr=out) for w, env in starts]
        try:
            codes = [process.wait(deadline_s) for process in running]
        except subprocess.TimeoutExpired:
            codes = [f"none after {deadline_s} s"]
        finally:
            end(running)
    output = "\n".join(log.read_text(errors="replace").splitlines()[-LINES_SHOWN:])
    if any(codes) or not results.exists():
        name = f"{job.ranks} ranks beside {job.library}"
        raise JobFailed(f"{name}: exit codes {codes}; their last lines:\n{output}")
    return json.loads(results.read_text()), output


def starts_of(job: Job, words: list[str]) -> list[tuple[list[str], dict[str, str]]]:
    """Return command and environment of each process to start: a launcher, or gloo's ranks."""
    if job.library != GLOO:
        launcher = command(job.library, job.ranks, "none")
        return [([*launcher, *words], environment(job.library, job.ranks, None))]
    common = group_environment(job.ranks)
    return [(words, {**common, "RANK": str(rank)}) for rank in range(job.ranks)]


def end(processes: list[subprocess.Popen]) -> None:
    """End what still runs: a launcher ends its ranks when asked, and they end with it otherwise."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    for process in processes:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def gloo_figure(figure: Figure) -> Figure:
    """Return gloo's figure of the same operation and number of ranks."""
    entry = Entry(GLOO, figure.entry.case)
    return Figure(Job(figure.job.ranks, GLOO), Measurement((entry,)), entry)


def apart(ours: list[float], theirs: list[float]) -> dict[str, float]:
    """Ratio of medians of two jobs, and of opposite quartiles: their blocks are no neighbours."""
    a, b = (statistics.quantiles([*x, *x], n=4, method="inclusive") for x in (ours, theirs))
    return {"median": a[1] / b[1], "low": a[0] / b[2], "high": a[2] / b[0]}
