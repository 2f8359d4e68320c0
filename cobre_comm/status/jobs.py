"""The jobs to which ranks belong: what each rank does, and for which rank it waits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cobre_kernels.collective.seeing.journal import ANOTHER_NODE, CLOSED_WELL

from cobre_comm.backends import SPECS
from cobre_comm.errors import named
from cobre_comm.journal.stats import Stats, stats_of
from cobre_comm.status.find import SeenRank

_NAMES = {spec.number: spec.name for spec in SPECS}
_STOPPED = ("T", "t")  # stopped by a signal; stopped by a debugger


class SeenJob(NamedTuple):
    """One communicator of a job, with those of its ranks that can be seen here."""

    name: str  # the name of the job; "" if no launcher gave a name
    communicator: int  # the number of the communicator in its processes; 0 is the first
    backend: str
    size: int
    ranks: tuple[SeenRank, ...]  # the ranks that can be seen, in order

    @property
    def unseen(self) -> list[int]:
        """The ranks that are on other machines, or have ended."""
        return sorted(set(range(self.size)) - {seen.journal.rank for seen in self.ranks})

    def stats(self) -> list[Stats]:
        """Return the statistics of the ranks that can be seen."""
        return [stats_of(seen.journal.copied) for seen in self.ranks]


def jobs_of(ranks: Iterable[SeenRank], job: str | None = None) -> list[SeenJob]:
    """Return the jobs to which these ranks belong.

    ``job`` is the name of one job, or the beginning of this name; other jobs are left out.
    """
    groups: dict[tuple[object, ...], list[SeenRank]] = defaultdict(list)
    for seen in ranks:
        own = seen.journal
        if own.ended != CLOSED_WELL and own.job.startswith(job or ""):
            groups[own.job, own.communicator, own.size, own.backend].append(seen)
    in_order = sorted(groups, key=lambda key: (key[0] == "", str(key)))  # named ones first
    return [_job(part) for key in in_order for part in _apart(groups[key])]


def _apart(group: list[SeenRank]) -> list[list[SeenRank]]:
    """Separate communicators that have the same names and sizes, such as those of a split."""
    if len({seen.journal.rank for seen in group}) == len(group):
        return [group]
    by_file: dict[tuple[int, int], list[SeenRank]] = defaultdict(list)
    for seen in group:
        by_file[seen.file].append(seen)
    return list(by_file.values())


def _job(group: Sequence[SeenRank]) -> SeenJob:
    first = group[0].journal
    backend = _NAMES.get(first.backend, "?")
    ranks = tuple(sorted(group, key=lambda seen: seen.journal.rank))
    return SeenJob(first.job, first.communicator, backend, first.size, ranks)


def state_of(seen: SeenRank) -> str:
    """Say in one word what a rank does."""
    own, process = seen.journal, seen.process
    if process is None:
        return "ended"
    if process.state.startswith(_STOPPED):
        return "stopped"
    if own.ended is not None:
        return "broken"
    if not own.calls or own.calls[-1].left_ns is not None:
        return "computing"
    return "calling" if own.awaited is None else "waiting"


def doing(seen: SeenRank) -> str:
    """Say what a rank does: its last call, since when it has been in it, and whom it waits for."""
    own = seen.journal
    if not own.calls:
        return "no call yet"
    last = own.calls[-1]
    if own.ended is not None:
        return f"its communicator is broken since {last}"
    if last.left_ns is not None:
        return f"in its own code for {age(own.read_ns, last.left_ns)} since {last}"
    said = f"in {last} for {age(own.read_ns, last.entered_ns)}"
    if own.awaited is None:
        return said
    awaited = "another node" if own.awaited == ANOTHER_NODE else f"rank {own.awaited}"
    return f"{said}, waits for {awaited}"


def waits(ranks: Sequence[SeenRank]) -> list[str]:
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
            continue  # this rank waits for another rank
        since = max(age_s(s.journal.read_ns, s.journal.awaited_since_ns) for s in those)
        names = named([seen.journal.rank for seen in those])
        lines.append(f"rank {rank}, by {names}, for {since:.1f} s{_why(culprit)}")
    return lines


def _is_still(seen: SeenRank) -> bool:
    """Whether a rank cannot continue, because its process has ended or is stopped."""
    return state_of(seen) in ("ended", "stopped")


def _why(culprit: SeenRank | None) -> str:
    if culprit is None or not _is_still(culprit):
        return ""
    if culprit.process is None:
        return "; its process has ended"
    return f"; it is stopped, and `kill -CONT {culprit.process.pid}` lets it go on"


def age(now_ns: int, then_ns: int) -> str:
    """Return, as text, how long ago a time was."""
    return f"{age_s(now_ns, then_ns):.1f} s"


def age_s(now_ns: int, then_ns: int) -> float:
    """Return how many seconds ago a time was; 0 if it is in the future."""
    return max(0.0, (now_ns - then_ns) * 1e-9)
