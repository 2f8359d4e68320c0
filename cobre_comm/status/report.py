"""The text of ``cobre-comm status`` on the ranks that it has found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from cobre_kernels.collective.seeing.journal import ANOTHER_NODE, CLOSED_WELL

from cobre_comm.backends import SPECS
from cobre_comm.journal.stats import stats_of
from cobre_comm.journal.tables import table_of_phases
from cobre_comm.journal.texts import runs_of
from cobre_comm.status.find import SeenRank

_NAMES = {spec.number: spec.name for spec in SPECS}
_STOPPED = ("T", "t")  # by a signal; by a debugger


def report(ranks: Iterable[SeenRank], job: str | None = None) -> str:
    """Describe the jobs to which these ranks belong; "" if there is none.

    Parameters
    ----------
    ranks : iterable of SeenRank
        The ranks of all jobs.
    job : str, optional
        The name of one job, or the beginning of its name; others are left out.
    """
    groups: dict[tuple[object, ...], list[SeenRank]] = defaultdict(list)
    for seen in ranks:
        own = seen.journal
        if own.ended != CLOSED_WELL and own.job.startswith(job or ""):
            groups[own.job, own.communicator, own.size, own.backend].append(seen)
    parts = [part for key in sorted(groups, key=str) for part in _apart(groups[key])]
    return "\n\n".join(_describe(part) for part in parts)


def _apart(group: list[SeenRank]) -> list[list[SeenRank]]:
    """Separate communicators with the same names and sizes, such as those of a split."""
    if len({seen.journal.rank for seen in group}) == len(group):
        return [group]
    by_file: dict[tuple[int, int], list[SeenRank]] = defaultdict(list)
    for seen in group:
        by_file[seen.file].append(seen)
    return list(by_file.values())


def _describe(group: Sequence[SeenRank]) -> str:
    first = group[0].journal
    which = "" if first.communicator == 0 else f", communicator {first.communicator}"
    head = f"job {first.job or '(no name)'}{which}: {_NAMES.get(first.backend, '?')}"
    head += f", {first.size} rank{'s' if first.size > 1 else ''}"
    ranks = sorted(group, key=lambda seen: seen.journal.rank)
    lines = [head, *(f"  rank {seen.journal.rank:<4}{_line(seen)}" for seen in ranks)]
    unseen = sorted(set(range(first.size)) - {seen.journal.rank for seen in ranks})
    if unseen:
        lines.append(f"  not seen (elsewhere, or ended): rank {runs_of(unseen, ',')}")
    phases = table_of_phases([stats_of(seen.journal.copied) for seen in ranks])
    return "\n".join([*lines, *_blame(ranks), *(f"  {line}" for line in phases)])


def _line(seen: SeenRank) -> str:
    """Return the line on one rank: its process, its phase, its last call, its wait."""
    own, process = seen.journal, seen.process
    where = "its process has ended;" if process is None else f"pid {process.pid:<8}"
    if process is not None and _is_still(seen):
        where += "STOPPED;"
    if own.phase:
        where += f" phase {own.phase};"
    if not own.calls:
        return f"{where} no call yet"
    last = own.calls[-1]
    if own.ended is not None:
        return f"{where} its communicator is broken since {last}"
    if last.left_ns is not None:
        return f"{where} in its own code for {_age(own.read_ns, last.left_ns)} since {last}"
    doing = f"{where} in {last} for {_age(own.read_ns, last.entered_ns)}"
    if own.awaited is None:
        return doing
    awaited = "another node" if own.awaited == ANOTHER_NODE else f"rank {own.awaited}"
    return f"{doing}, waits for {awaited}"


def _blame(ranks: Sequence[SeenRank]) -> list[str]:
    """Return a line on each rank that others wait for, unless it runs and waits itself."""
    waiting: dict[int, list[SeenRank]] = defaultdict(list)
    for seen in ranks:
        if seen.journal.awaited is not None and seen.journal.awaited >= 0:
            waiting[seen.journal.awaited].append(seen)
    known = {seen.journal.rank: seen for seen in ranks}
    lines = []
    for rank, those in sorted(waiting.items()):
        culprit = known.get(rank)
        if culprit is not None and culprit.journal.awaited is not None and not _is_still(culprit):
            continue  # it waits for another one
        since = max(_age_s(s.journal.read_ns, s.journal.awaited_since_ns) for s in those)
        names = runs_of([seen.journal.rank for seen in those], ",")
        found = f"rank {rank}, by rank {names}, for {since:.1f} s{_why(culprit)}"
        lines.append(f"  waited for: {found}")
    return lines


def _is_still(seen: SeenRank) -> bool:
    """Whether a rank cannot go on: its process has ended, or is stopped."""
    return seen.process is None or seen.process.state.startswith(_STOPPED)


def _why(culprit: SeenRank | None) -> str:
    if culprit is None or not _is_still(culprit):
        return ""
    if culprit.process is None:
        return "; its process has ended"
    return f"; it is stopped, and `kill -CONT {culprit.process.pid}` lets it go on"


def _age(now_ns: int, then_ns: int) -> str:
    return f"{_age_s(now_ns, then_ns):.1f} s"


def _age_s(now_ns: int, then_ns: int) -> float:
    return max(0.0, (now_ns - then_ns) * 1e-9)
