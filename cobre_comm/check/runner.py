"""Runs the checks, one after another; a failure is a result, and an interrupt ends the run."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from cobre_comm.check.result import Check, Point, Result
from cobre_comm.check.sddp import TrainingFailed
from cobre_comm.journal.stats import Stats
from cobre_comm.system.streams import write_error
from cobre_comm.testing.ranks.outcome import RanksFailed
from cobre_comm.testing.ranks.pool import RankPool
from cobre_comm.testing.ranks.surroundings import SHM_FOLDER, leftovers

IN_A_ROW = 3  # a point is given up after so many failures in a row: a failed check may take minutes
NOT_TRIED = f"not tried, because {IN_A_ROW} in a row had failed"
PLAIN = (AssertionError, RanksFailed, TrainingFailed)  # exceptions with a text that says all


class Watch(Protocol):
    """Is told when a check begins, and when it has ended."""

    def begin(self, point: Point, check: Check) -> None:
        """Note that a check begins."""

    def end(self, result: Result) -> None:
        """Note that a check has ended."""


class Lines:
    """Writes a line to stderr when all checks of one backend and number of ranks have ended."""

    def __init__(self, counts: dict[Point, int]) -> None:
        self._counts = dict(counts)
        self._seconds = dict.fromkeys(counts, 0.0)
        self._failed = dict.fromkeys(counts, 0)
        self._left = dict(counts)

    def begin(self, point: Point, check: Check) -> None:
        """Write nothing when a check begins."""

    def end(self, result: Result) -> None:
        """Count the result of a check; after the last check of a point, write the line."""
        point = result.point
        self._left[point] -= 1
        self._seconds[point] += result.seconds
        self._failed[point] += not result.passed
        if not self._left[point]:
            failed, count = self._failed[point], self._counts[point]
            said = f"{failed} of {count} checks failed" if failed else f"{count} checks passed"
            write_error(f"{point}: {said}, {self._seconds[point]:.1f} s")


def run_all(plan: Mapping[Point, Sequence[Check]], watch: Watch) -> list[Result]:
    """Run all checks; return their results, in order. Tell ``watch`` when each begins and ends."""
    results: list[Result] = []
    try:
        for point, checks in plan.items():
            _run(point, checks, watch, results)
    finally:
        for name in leftovers():  # names that killed ranks have left; no rank runs any more
            with contextlib.suppress(OSError):
                (SHM_FOLDER / name).unlink()
    return results


def _run(point: Point, checks: Sequence[Check], watch: Watch, results: list[Result]) -> None:
    failed = 0
    with RankPool(point.backend, point.ranks) as pool, _ended_at_once(pool):
        for check in checks:
            watch.begin(point, check)
            if failed < IN_A_ROW:
                result = _try(point, check, pool)
            else:
                result = Result(point, check.column, check.name, 0.0, NOT_TRIED)
            failed = 0 if result.passed else failed + 1
            watch.end(result)
            results.append(result)


def _try(point: Point, check: Check, pool: RankPool) -> Result:
    began, detail, found = time.monotonic(), "", None
    try:
        found = check.run(pool)
    except Exception as error:
        notes = getattr(error, "__notes__", [])
        is_plain = isinstance(error, PLAIN) and str(error).strip()
        detail = "\n".join([str(error), *notes]) if is_plain else traceback.format_exc()
    stats = found if isinstance(found, Stats) else None
    return Result(point, check.column, check.name, time.monotonic() - began, detail, stats)


@contextlib.contextmanager
def _ended_at_once(pool: RankPool) -> Iterator[None]:
    """On an interrupt, kill the ranks, which may be waiting for each other."""
    try:
        yield
    except BaseException:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the rest is quick
        for pid in filter(None, pool.pids):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        raise
