"""Statistics of a communicator's ranks: calls, bytes and seconds, as data and as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

from cobre_kernels.collective.calls import OPERATIONS
from cobre_kernels.collective.seeing.journal import LIBRARY
from numpy.typing import NDArray

from cobre_comm.errors import runs
from cobre_comm.journal.reading import Copied, value

NOTEWORTHY = 0.05  # a rank that is waited for longer than this share of the time is named
OWN_ROW = "library"  # collectives that the library needs itself, inside split for example
UNITS = ("bytes", "KB", "MB", "GB", "TB")


class OperationStats(NamedTuple):
    """Calls, bytes and seconds of one rank for one operation.

    Attributes
    ----------
    calls : int
        Completed calls.
    nbytes : int
        Bytes that this rank contributed; of broadcasts, those of the root.
    waiting_s : float
        Seconds until the last rank had come.
    transferring_s : float
        Seconds of the rest: moving data, folding, and waits of less than half a microsecond.
    waited_calls : int
        Calls in which this rank waited for another one.
    came_last : dict of int to int
        For each rank that was waited for: the calls in which it came last.
    waited_for_s : dict of int to float
        For each such rank: the seconds until it had come.
    """

    calls: int
    nbytes: int
    waiting_s: float
    transferring_s: float
    waited_calls: int
    came_last: dict[int, int]
    waited_for_s: dict[int, float]

    @property
    def total_s(self) -> float:
        """Seconds from entering to leaving, of all calls."""
        return self.waiting_s + self.transferring_s


@dataclass(frozen=True, repr=False)
class Stats:
    """Statistics of one rank; its ``repr`` is a table.

    Attributes
    ----------
    rank, size : int
        Which rank of how many.
    operations : dict of str to OperationStats
        By name, the operations that were called. ``"library"`` stands for collectives that the
        library calls itself, inside ``split`` or ``objects.broadcast`` for example.
    """

    rank: int
    size: int
    operations: Mapping[str, OperationStats]

    def __getitem__(self, operation: str) -> OperationStats:
        """Return the numbers of one operation; zeros if it was never called."""
        return self.operations.get(operation, OperationStats(0, 0, 0.0, 0.0, 0, {}, {}))

    def __repr__(self) -> str:
        titles = ("operation", "calls", "bytes", "waiting", "transferring")
        rows = [
            (
                name,
                str(s.calls),
                _bytes(s.nbytes),
                _seconds(s.waiting_s),
                _seconds(s.transferring_s),
            )
            for name, s in self.operations.items()
        ]
        sentences = [
            _sentence(name, s, rank)
            for name, s in self.operations.items()
            for rank in s.waited_for_s
            if s.waited_for_s[rank] > NOTEWORTHY * s.total_s
        ]
        return "\n".join(
            [f"rank {self.rank} of {self.size}", *aligned([titles, *rows]), *sentences]
        )


def operations_of(copied: Copied, waits: NDArray[Any] | None = None) -> dict[str, OperationStats]:
    """Return the statistics in a copy of a journal.

    Parameters
    ----------
    copied : Copied
        The journal.
    waits : ndarray of int64, shape (operations, size, 2), optional
        Calls and ticks that its rank waited for each rank. Without them, the statistics have
        only the rank that it waited for longest.
    """
    found = {}
    for number, name in {**OPERATIONS, LIBRARY: OWN_ROW}.items():
        row = copied.view.operations[number]
        calls = value(row.calls)
        if not calls:
            continue
        if waits is None:
            worst = [(value(row.worst), value(row.worst_calls), value(row.worst_ticks))]
        else:
            worst = [(rank, *pair) for rank, pair in enumerate(waits[number].tolist())]
        waited = value(row.waited_ticks)
        found[name] = OperationStats(
            calls,
            value(row.size_bytes),
            copied.duration_s(waited),
            copied.duration_s(max(value(row.ticks) - waited, 0)),
            value(row.waited_calls),
            {rank: count for rank, count, _ in worst if count},
            {rank: copied.duration_s(ticks) for rank, count, ticks in worst if count},
        )
    return found


def table_of_ranks(title: str, size: int, ranks: Mapping[int, Mapping[str, OperationStats]]) -> str:
    """Return the table over all ranks: least, mean and most, and the rank that is waited for.

    Parameters
    ----------
    title : str
        Its first line begins with this.
    size : int
        Number of ranks of the communicator.
    ranks : mapping of int to mapping
        The statistics of the ranks that are known.
    """
    names = list(dict.fromkeys(name for stats in ranks.values() for name in stats))
    titles = ("operation", "calls", "bytes", "waiting: least", "mean", "most", "transferring: mean")
    rows, sentences = [titles], []
    for name in names:
        of_name = {rank: stats[name] for rank, stats in ranks.items() if name in stats}
        each = of_name.values()
        waits = [s.waiting_s for s in each]
        rows.append(
            (
                name,
                str(max(s.calls for s in each)),
                _bytes(sum(s.nbytes for s in each)),
                _seconds(min(waits)),
                _seconds(fmean(waits)),
                _seconds(max(waits)),
                _seconds(fmean(s.transferring_s for s in each)),
            )
        )
        sentences += _straggler(name, each)
    lines = [f"{title}: {_of(ranks, size)}", *aligned(rows), *sentences]
    return "\n".join(lines)


def _of(ranks: Iterable[int], size: int) -> str:
    """Say which ranks a table covers, and which it lacks."""
    known = sorted(ranks)
    if len(known) == size:
        return "1 rank" if size == 1 else f"{size} ranks"
    missing = [rank for rank in range(size) if rank not in known]
    seen, unseen = runs_of(known, ", "), runs_of(missing, ", ")
    return f"ranks {seen} of {size}; without {unseen}, which this rank cannot read"


def runs_of(numbers: Sequence[int], separator: str) -> str:
    """Return ascending numbers as in ``0-3,8``."""
    return separator.join(runs(numbers))


def _straggler(name: str, each: Iterable[OperationStats]) -> list[str]:
    """Say which rank the others waited for longest, in the words of the one that waited most."""
    told = [(rank, s) for s in each for rank in s.waited_for_s]
    together: dict[int, float] = {}
    for rank, stats in told:
        together[rank] = together.get(rank, 0.0) + stats.waited_for_s[rank]
    if not together:
        return []
    worst = max(together, key=together.__getitem__)
    stats = max((s for r, s in told if r == worst), key=lambda s: s.waited_for_s[worst])
    if stats.waited_for_s[worst] <= NOTEWORTHY * stats.total_s:
        return []
    return [_sentence(name, stats, worst)]


def _sentence(name: str, stats: OperationStats, rank: int) -> str:
    calls = "call" if stats.calls == 1 else "calls"
    return (
        f"rank {rank} was waited for in {stats.came_last[rank]} of {stats.calls} {name} {calls}, "
        f"{_seconds(stats.waited_for_s[rank])} of {_seconds(stats.total_s)}"
    )


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows as lines, the first column aligned left and the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _seconds(seconds: float) -> str:
    """Return a time as text, in s, ms or us."""
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1.0:
            return f"{seconds * scale:.3g} {unit}" if seconds * scale < 1000 else f"{seconds:.0f} s"
    return f"{seconds * 1e6:.3g} us"


def _bytes(count: float) -> str:
    for unit in UNITS:
        if count < 1000 or unit == UNITS[-1]:
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == UNITS[0] else f"{count:.3g} {unit}"
