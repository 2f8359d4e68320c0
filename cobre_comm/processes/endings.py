"""The endings of ranks, and the first failure among them.

When a rank is lost, the other ranks raise ``CollectiveFailed``, which names the lost rank. These
ranks may end before the lost rank does, so the earliest failure need not be the cause. A failure
that follows from the loss of another rank is secondary. The first failure is the earliest primary
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cobre_comm.errors import how_ended, out_of_memory_hint
from cobre_comm.reports.alike import alike
from cobre_comm.reports.report_pipe import Report

STARTER = -1  # stands for mpiexec, in place of a rank's number


@dataclass(frozen=True)
class Ending:
    """How a rank ended."""

    rank: int  # the rank, or STARTER
    code: int  # its exit code; negative for a signal
    at: float  # when the launcher noticed the end, by ``time.monotonic``
    report: Report | None = None
    aborts: bool = False  # whether the rank ended the whole job, by ``abort``

    @property
    def lost(self) -> frozenset[int]:
        """The other ranks that were lost and so, as this rank reports, made this rank fail."""
        named = frozenset(self.report.lost if self.report else ())
        return frozenset() if self.rank in named else named

    @property
    def is_loss(self) -> bool:
        """Whether the rank is lost by a cause of its own, so that the others can continue."""
        return self.code != 0 and not (self.secondary or self.aborts)

    @property
    def secondary(self) -> bool:
        """Whether the failure only follows from another failure."""
        return self.rank == STARTER or bool(self.lost)


def first_failure(endings: Iterable[Ending]) -> Ending | None:
    """Return the ending that caused the others, or None if no rank failed."""
    failures = [ending for ending in endings if ending.code != 0]
    # Of endings at the same moment, an ending by a signal counts first, because a signal leaves no
    # time for a consequence. The ending of a rank that has lost another rank counts before that of
    # mpiexec, because the rank says more.
    return min(
        failures,
        key=lambda end: (end.secondary, end.rank == STARTER, end.at, end.code >= 0),
        default=None,
    )


def with_abort(endings: Sequence[Ending], starter: Ending) -> list[Ending]:
    """Return the endings of ranks and ``mpiexec``, when ``mpiexec`` has ended the job.

    ``mpiexec`` ends a job because a rank has called MPI_Abort, and exits with the code of that
    call. If the cause was an exception, the rank has reported it. If no rank has reported anything,
    the caller of MPI_Abort is taken to be the rank that ended first for a cause of its own. The
    exit code of that rank does not count, because MPICH's MPI_Abort may return.
    """
    first = first_failure(endings)
    has_reported = any(ending.report for ending in endings)
    if first is None or first.secondary or has_reported or starter.code < 0:
        return [*endings, starter]
    aborted = replace(first, code=starter.code)
    return [aborted if ending is first else ending for ending in endings]


def of_survivors(endings: Iterable[Ending]) -> list[Ending]:
    """Return the endings of the ranks that are not lost; of all ranks if all are lost.

    A rank that fails because it has lost another rank is a survivor that could not continue.
    """
    every = list(endings)
    return [ending for ending in every if not ending.is_loss] or every


def ranks_alike(endings: Iterable[Ending], first: Ending) -> list[int]:
    """Return the rank of the first failure, and all ranks that reported the same mistake."""
    reports = {ending.rank: ending.report for ending in endings if ending.report is not None}
    groups = alike(reports, lambda report: report.cause)
    return next((ranks for ranks, _ in groups if first.rank in ranks), [first.rank])


def exit_status(code: int) -> int:
    """Return the exit status in a shell for an exit code, which is negative for a signal."""
    return 128 - code if code < 0 else code


def name_of(rank: int) -> str:
    """Return the name of a rank in messages; ``mpiexec`` for ``STARTER``."""
    return "mpiexec" if rank == STARTER else f"rank {rank}"


def describe_loss(ending: Ending) -> str:
    """Say how a rank was lost, in one line, with the exception that it has reported."""
    report = ending.report
    if report is None or not report.error:
        return how_ended(name_of(ending.rank), ending.code)
    text = report.text.strip().partition("\n")[0].rstrip()
    return f"{name_of(ending.rank)} raised {report.error}" + (f": {text}" if text else "")


def describe(ending: Ending) -> str:
    """Say how a rank ended, in one line."""
    return how_ended(name_of(ending.rank), ending.code) + out_of_memory_hint(ending.code)
