"""The text that ``cobre-comm status`` prints about the jobs that it has found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cobre_comm.errors import named
from cobre_comm.journal.tables import table_of_phases
from cobre_comm.status.find import SeenRank
from cobre_comm.status.jobs import SeenJob, age, doing, state_of, waits


def report(jobs: Iterable[SeenJob]) -> str:
    """Describe the jobs; "" if there are none."""
    return "\n\n".join(_describe(job) for job in jobs)


def _describe(job: SeenJob) -> str:
    which = "" if job.communicator == 0 else f", communicator {job.communicator}"
    head = f"job {job.name or '(no name)'}{which}: {job.backend}"
    head += f", {job.size} rank{'s' if job.size > 1 else ''}"
    lines = [head, *(f"  rank {seen.journal.rank:<4}{_line(seen)}" for seen in job.ranks)]
    if job.unseen:
        lines.append(f"  not seen (elsewhere, or ended): {named(job.unseen)}")
    lines += [f"  waited for: {wait}" for wait in waits(job.ranks)]
    lines += _reported(job.ranks)
    return "\n".join([*lines, *(f"  {line}" for line in table_of_phases(job.stats()))])


def _line(seen: SeenRank) -> str:
    """Return the line on one rank: its process, its phase, its last call, and its wait."""
    process = seen.process
    where = "its process has ended;" if process is None else f"pid {process.pid:<8}"
    if state_of(seen) == "stopped":
        where += "STOPPED;"
    if seen.journal.phase:
        where += f" phase {seen.journal.phase};"
    return f"{where} {doing(seen)}"


def _reported(ranks: Sequence[SeenRank]) -> list[str]:
    """Return a line for each rank that reports progress, with its latest numbers."""
    lines = []
    for seen in ranks:
        if seen.reports is not None:
            latest = zip(seen.reports.names, seen.reports.values[-1], strict=True)
            said = ", ".join(f"{name} {number:.8g}" for name, number in latest if number == number)
            ago = age(seen.journal.read_ns, seen.reports.times_ns[-1])
            lines.append(f"  rank {seen.journal.rank} reported {ago} ago: {said}")
    return lines
