"""The report of a test that has run on ranks: first causes, then failures that follow from them."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest

from cobre_comm.errors import named
from cobre_comm.reports.alike import alike
from cobre_comm.reports.report_pipe import lost_ranks
from cobre_comm.testing.marker import on_rank
from cobre_comm.testing.marker.jobs import MarkedJob, refuse
from cobre_comm.testing.marker.on_rank import FAILED, PASSED, XFAILED, Result
from cobre_comm.testing.ranks.outcome import Outcome


@dataclass(frozen=True)
class Failure:
    """The failure of a rank: in one line, in full, its place, and the lost ranks that it names."""

    line: str
    text: str
    where: str = ""
    lost: tuple[int, ...] = ()


def judge(job: MarkedJob, outcomes: Sequence[Outcome]) -> None:
    """Fail or skip the test if it failed or was skipped on some rank."""
    killed = [each for each in outcomes if each.exit_code == -signal.SIGKILL]
    if len(killed) == job.killed:
        outcomes = [each for each in outcomes if each not in killed]
    failures = {each.rank: found for each in outcomes if (found := _failure(each, job))}
    if failures:
        refuse(describe(job, failures))
    if len(killed) < job.killed:
        refuse(
            f"{len(killed)} of {job.size} ranks over {job.backend} were killed, not {job.killed}"
        )
    for each in outcomes:
        result: Result = each.value
        if result.outcome != PASSED:
            end = pytest.xfail if result.outcome == XFAILED else pytest.skip
            end(f"rank {each.rank}: {result.line}")


def describe(job: MarkedJob, failures: Mapping[int, Failure]) -> str:
    """Return all failures as text: causes once, in full; failures that follow, in one line each."""
    followed = {rank: each for rank, each in failures.items() if _follows(rank, failures)}
    if len(followed) == len(failures):  # each failure blames another rank
        followed = {}
    causes = {rank: each for rank, each in failures.items() if rank not in followed}
    first = next(iter(causes.values())).line
    whose = named(rank for rank, each in causes.items() if each.line == first)
    parts = [f"{whose} of {job.size} over {job.backend}: {first}"]
    for ranks, each in alike(causes, lambda each: (each.line, each.where or each.text)):
        parts.append(f"\n_____ {named(ranks)}: {each.line} _____\n\n{each.text}")
    for ranks, each in alike(followed, lambda each: each.line):
        parts.append(f"\nand then {named(ranks)}: {each.line}")
    return "\n".join(parts)


def _follows(rank: int, failures: Mapping[int, Failure]) -> bool:
    """Whether a rank's failure names lost ranks, and each of these ranks has a failure too."""
    lost = set(failures[rank].lost)
    return bool(lost) and lost <= failures.keys() - {rank}


def _failure(outcome: Outcome, job: MarkedJob) -> Failure | None:
    if outcome.timed_out:
        line = f"still busy after {job.timeout_s:g} s"
        return Failure(line, "\n".join(_of_the_test(outcome.output.splitlines())))
    if outcome.ended:
        return Failure(f"its process ended with exit code {outcome.exit_code}", outcome.output)
    if outcome.exception is not None:  # the rank could not make its communicator
        error = outcome.exception
        return Failure(str(error), outcome.traceback, lost=lost_ranks(error))
    result: Result = outcome.value
    if result.outcome == FAILED:
        return Failure(result.line, result.text, result.where, result.lost)
    return None


def _of_the_test(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines that a rank wrote at its end, without the frames that called the test."""
    is_ours = False
    for line in lines:
        is_ours = line.startswith("  File ") and (is_ours or on_rank.__file__ in line)
        if not is_ours:
            yield line
