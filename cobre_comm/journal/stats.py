"""Statistics of a rank, by operation and by phase: as data, as a table, and as files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from cobre_kernels.collective.calls import OPERATIONS
from cobre_kernels.collective.comm import LARGE_ROWS, SIZES
from cobre_kernels.collective.seeing.journal import LIBRARY, OPERATION_ROWS
from cobre_kernels.machine.libc import NS_PER_S
from cobre_kernels.machine.record import View
from numpy.typing import NDArray

from cobre_comm.journal.copied import OWN_ROW, Copied, value
from cobre_comm.journal.texts import aligned, bytes_text, power_text, seconds_text

NOTEWORTHY = 0.05  # a rank that is waited for longer than this share of the time is named
# The columns of a file, with their types in Parquet.
COLUMNS = {
    "rank": "int64",
    "size": "int64",
    "kind": "string",
    "name": "string",
    "entered": "int64",
    "computing_s": "float64",
    "calls": "int64",
    "bytes": "int64",
    "waiting_s": "float64",
    "transferring_s": "float64",
    "waited_calls": "int64",
    "waited_for": "int64",
    "waited_for_calls": "int64",
    "waited_for_s": "float64",
}
NO_PYARROW = (
    "Stats.to_parquet needs pyarrow: pip install pyarrow (or 'cobre-comm[parquet]'); Stats.to_csv "
    "needs nothing"
)
TRYING = "trying"
SLOTS_ONLY = "large calls go through slots: the system denies process_vm_readv"


class OperationStats(NamedTuple):
    """Calls, bytes and seconds of one rank for one operation, or in one phase.

    Attributes
    ----------
    calls : int
        Completed calls.
    nbytes : int
        Bytes that this rank contributed; of broadcasts, those of the root.
    waiting_s : float
        Seconds until the last rank had arrived.
    transferring_s : float
        Seconds of the rest: moving data, folding, and waits of less than half a microsecond.
    waited_calls : int
        Calls in which this rank waited for another one.
    came_last : dict of int to int
        For each rank that was waited for: the calls in which it came last.
    waited_for_s : dict of int to float
        For each such rank: the seconds until it had arrived.

    Examples
    --------
    >>> from cobre_comm import LocalBackend
    >>> comm = LocalBackend()
    >>> comm.barrier()
    >>> comm.stats()["barrier"].calls
    1
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
        """Seconds from entering to leaving, of all calls.

        Examples
        --------
        >>> from cobre_comm import OperationStats
        >>> OperationStats(2, 16, 0.25, 0.5, 1, {1: 1}, {1: 0.25}).total_s
        0.75
        """
        return self.waiting_s + self.transferring_s


class PhaseStats(NamedTuple):
    """Seconds of one rank in one phase: computing, and in collectives.

    Attributes
    ----------
    entered : int
        Times that the rank has entered the phase; a return from a phase inside it counts too.
    computing_s : float
        Seconds in the phase outside collectives of this communicator. A call under way counts when
        it has returned.
    collectives : OperationStats
        The collectives in the phase.

    Examples
    --------
    >>> from cobre_comm import LocalBackend
    >>> comm = LocalBackend()
    >>> with comm.phase("solve"):
    ...     comm.barrier()
    >>> comm.stats().phases["solve"].entered
    1
    """

    entered: int
    computing_s: float
    collectives: OperationStats

    @property
    def waiting_s(self) -> float:
        """Seconds in collectives until the last rank had arrived.

        Examples
        --------
        >>> from cobre_comm import OperationStats, PhaseStats
        >>> collectives = OperationStats(2, 16, 0.25, 0.5, 1, {1: 1}, {1: 0.25})
        >>> PhaseStats(1, 2.0, collectives).waiting_s
        0.25
        """
        return self.collectives.waiting_s

    @property
    def transferring_s(self) -> float:
        """The rest of the seconds in collectives.

        Examples
        --------
        >>> from cobre_comm import OperationStats, PhaseStats
        >>> collectives = OperationStats(2, 16, 0.25, 0.5, 1, {1: 1}, {1: 0.25})
        >>> PhaseStats(1, 2.0, collectives).transferring_s
        0.5
        """
        return self.collectives.transferring_s

    @property
    def total_s(self) -> float:
        """Seconds in the phase.

        Examples
        --------
        >>> from cobre_comm import OperationStats, PhaseStats
        >>> collectives = OperationStats(2, 16, 0.25, 0.5, 1, {1: 1}, {1: 0.25})
        >>> PhaseStats(1, 2.0, collectives).total_s
        2.75
        """
        return self.computing_s + self.collectives.total_s


class WayStats(NamedTuple):
    """The way of the large calls of one operation and one power of two of bytes.

    A large call has 64 KiB or more of private memory, on one machine. Its bytes go through slots
    (``"slots"``), and ranks may write results past their caches (``"streamed"``). Or ranks read the
    arrays of other ranks (``"read"``), and in a broadcast the root may also write to the arrays of
    the others (``"both ends"``). The first calls try all ways, one after the other. Then all ranks
    take the fastest way. After 128 calls or more, they try all ways again: so late that the trials
    of slower ways cost at most a 32nd of the time of all calls.

    Attributes
    ----------
    operation : str
        ``"broadcast"`` or ``"allgatherv"``.
    least_bytes : int
        A power of two. The calls have at least so many bytes, and less than twice as many: bytes of
        the buffer in a broadcast, of the largest block in an allgatherv.
    calls : int
        Calls since the last trials of the ways began; these trials count too.
    way : str
        The way that is taken, or ``"trying"`` as long as ways are tried.
    seconds : dict of str to float
        For each way: the second shortest time of the calls that tried it. A call lasts from the
        entry of the last rank to the end of the last rank, so all ranks have the same seconds.
        Empty as long as ways are tried.

    Examples
    --------
    >>> from cobre_comm import Stats, WayStats
    >>> seconds = {"slots": 2.1e-3, "read": 1.3e-3, "both ends": 1.2e-3}
    >>> Stats(0, 2, {}, ways=(WayStats("broadcast", 2**23, 60, "both ends", seconds),))
    rank 0 of 2
    operation  calls  bytes  waiting  transferring
    large call  at least  calls        way   slots    read  both ends
    broadcast      8 MiB     60  both ends  2.1 ms  1.3 ms     1.2 ms
    """

    operation: str
    least_bytes: int
    calls: int
    way: str
    seconds: dict[str, float]


NO_CALLS = OperationStats(0, 0, 0.0, 0.0, 0, {}, {})


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
    phases : dict of str to PhaseStats
        By name, the phases that were entered. ``"outside"`` is the time outside these phases, since
        the first phase got its number. ``"library"`` is the time in methods that call collectives
        themselves. For a program without phases there is no entry.
    ways : tuple of WayStats
        The ways of large calls, by operation and power of two of bytes. Empty before the first such
        call, over ``local``, and on several nodes.
    slots_only : bool
        Whether a large call has found that the system denies ``process_vm_readv``. Then all large
        calls go through slots.

    Examples
    --------
    >>> from cobre_comm import LocalBackend
    >>> comm = LocalBackend()
    >>> comm.stats()
    rank 0 of 1
    operation  calls  bytes  waiting  transferring
    >>> comm.barrier()
    >>> list(comm.stats().operations)
    ['barrier']
    """

    rank: int
    size: int
    operations: Mapping[str, OperationStats]
    phases: Mapping[str, PhaseStats] = field(default_factory=dict)
    ways: tuple[WayStats, ...] = ()
    slots_only: bool = False

    def __getitem__(self, operation: str) -> OperationStats:
        """Return the numbers of one operation; zeros if it was never called."""
        return self.operations.get(operation, NO_CALLS)

    def __repr__(self) -> str:
        lines = [f"rank {self.rank} of {self.size}", *self._table_of_operations()]
        if self.phases:
            lines += self._table_of_phases()
        if self.ways:
            lines += self._table_of_ways()
        if self.slots_only:
            lines.append(SLOTS_ONLY)
        return "\n".join(lines)

    def _table_of_operations(self) -> list[str]:
        rows = [("operation", "calls", "bytes", "waiting", "transferring")]
        sentences: list[str] = []
        for name, s in self.operations.items():
            rows.append((name, str(s.calls), bytes_text(s.nbytes), *_times(s)))
            for rank in s.waited_for_s:
                sentences += noteworthy(s, rank, s.total_s, operation=name)
        return [*aligned(rows), *sentences]

    def _table_of_phases(self) -> list[str]:
        rows = [("phase", "entered", "computing", "waiting", "transferring")]
        sentences: list[str] = []
        for name, s in self.phases.items():
            rows.append((name, str(s.entered), seconds_text(s.computing_s), *_times(s)))
            for rank in s.collectives.waited_for_s:
                sentences += noteworthy(s.collectives, rank, s.total_s, phase=name)
        return [*aligned(rows), *sentences]

    def _table_of_ways(self) -> list[str]:
        names = list(dict.fromkeys(name for w in self.ways for name in w.seconds))
        rows = [
            (
                w.operation,
                power_text(w.least_bytes),
                str(w.calls),
                w.way,
                *(seconds_text(w.seconds[name]) if name in w.seconds else "-" for name in names),
            )
            for w in self.ways
        ]
        return aligned([("large call", "at least", "calls", "way", *names), *rows])

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a row for each operation and each phase to a CSV file, UTF-8, replacing it.

        The columns are ``rank``, ``size``, ``kind`` (``operation`` or ``phase``), ``name``,
        ``entered``, ``computing_s`` (both for phases only), ``calls``, ``bytes``, ``waiting_s``,
        ``transferring_s`` and ``waited_calls``. Then follow the rank that was waited for longest,
        the calls in which that rank came last, and the seconds until it had arrived:
        ``waited_for``, ``waited_for_calls``, ``waited_for_s``. A cell without a value is empty.

        Parameters
        ----------
        path : str or path
            A file of this rank alone, such as ``f"stats-{comm.rank}.csv"``.

        Raises
        ------
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from cobre_comm import LocalBackend
        >>> comm = LocalBackend()
        >>> comm.barrier()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / f"stats-{comm.rank}.csv"
        ...     comm.stats().to_csv(path)
        ...     columns, row = path.read_text().splitlines()
        >>> columns[:20], row[:16]
        ('rank,size,kind,name,', '0,1,operation,ba')
        """
        import csv  # here, so that each rank starts sooner

        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self._rows())

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the rows of :meth:`to_csv` to a Parquet file, replacing it.

        Parameters
        ----------
        path : str or path
            A file of this rank alone.

        Raises
        ------
        ModuleNotFoundError
            If pyarrow is not installed.
        OSError
            If the file cannot be written.

        Examples
        --------
        With pyarrow; pandas reads the files of all ranks as one table:

        >>> comm.stats().to_parquet(f"stats-{comm.rank}.parquet")  # doctest: +SKIP
        >>> pandas.concat(  # doctest: +SKIP
        ...     map(pandas.read_parquet, glob.glob("stats-*.parquet"))
        ... )
        """
        try:
            import pyarrow
            from pyarrow import parquet
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(NO_PYARROW, name=error.name) from None
        schema = pyarrow.schema([(name, pyarrow.type_for_alias(t)) for name, t in COLUMNS.items()])
        parquet.write_table(pyarrow.Table.from_pylist(list(self._rows()), schema), Path(path))

    def _rows(self) -> Iterator[dict[str, int | float | str]]:
        """Yield a row for each operation and each phase, without the columns that have no value."""
        for name, s in self.operations.items():
            yield self._row("operation", name, s)
        for name, phase in self.phases.items():
            own = {"entered": phase.entered, "computing_s": phase.computing_s}
            yield {**self._row("phase", name, phase.collectives), **own}

    def _row(self, kind: str, name: str, stats: OperationStats) -> dict[str, int | float | str]:
        row: dict[str, int | float | str] = {
            "rank": self.rank,
            "size": self.size,
            "kind": kind,
            "name": name,
            "calls": stats.calls,
            "bytes": stats.nbytes,
            "waiting_s": stats.waiting_s,
            "transferring_s": stats.transferring_s,
            "waited_calls": stats.waited_calls,
        }
        if stats.waited_for_s:
            worst = max(stats.waited_for_s, key=stats.waited_for_s.__getitem__)
            row["waited_for"] = worst
            row["waited_for_calls"] = stats.came_last[worst]
            row["waited_for_s"] = stats.waited_for_s[worst]
        return row


WAITED_FOR = "was waited for in"


def _times(stats: OperationStats | PhaseStats) -> tuple[str, str]:
    """Return the times in collectives as text."""
    return seconds_text(stats.waiting_s), seconds_text(stats.transferring_s)


def noteworthy(
    stats: OperationStats, rank: int, total_s: float, operation: str = "", phase: str = ""
) -> list[str]:
    """Say in how many calls of an operation, or in a phase, a rank was waited for, and how long.

    Say nothing if that is no more than the share NOTEWORTHY of ``total_s``.
    """
    if stats.waited_for_s[rank] <= NOTEWORTHY * total_s:
        return []
    calls = "call" if stats.calls == 1 else "calls"
    which = f"{calls} of phase {phase}" if phase else f"{operation} {calls}"
    return [
        f"rank {rank} {WAITED_FOR} {stats.came_last[rank]} of {stats.calls} {which}, "
        f"{seconds_text(stats.waited_for_s[rank])} of {seconds_text(stats.total_s)}"
    ]


def stats_of(copied: Copied, waits: NDArray[np.int64] | None = None) -> Stats:
    """Return the statistics in a copy of a journal.

    ``waits``, of shape (operations + phases, size, 2), has the calls and ticks that the rank of the
    journal waited for each rank. Without ``waits``, the only known rank is the one that was waited
    for longest.
    """
    view = copied.view
    operations = {
        name: _collectives(copied, view.operations[number], number, waits)
        for number, name in {**OPERATIONS, LIBRARY: OWN_ROW}.items()
    }
    phases = {}
    for number, name in copied.phase_names().items():
        row = view.phases[number]
        if value(row.entered):
            collectives = _collectives(copied, row.collectives, OPERATION_ROWS + number, waits)
            total_s = copied.duration_s(copied.ticks_in_phase(number))
            computing_s = max(total_s - collectives.total_s, 0.0)
            phases[name] = PhaseStats(value(row.entered), computing_s, collectives)
    called = {name: stats for name, stats in operations.items() if stats.calls}
    return Stats(value(view.rank), value(view.size), called, phases)


def _collectives(
    copied: Copied, row: View, number: int, waits: NDArray[np.int64] | None
) -> OperationStats:
    """Return what a row of operations, or of a phase, says of its collectives."""
    if waits is None:
        worst = [(value(row.worst), value(row.worst_calls), value(row.worst_ticks))]
    else:
        worst = [(rank, *pair) for rank, pair in enumerate(waits[number].tolist())]
    waited = value(row.waited_ticks)
    return OperationStats(
        value(row.calls),
        value(row.size_bytes),
        copied.duration_s(waited),
        copied.duration_s(max(value(row.ticks) - waited, 0)),
        value(row.waited_calls),
        {rank: count for rank, count, _ in worst if count},
        {rank: copied.duration_s(ticks) for rank, count, ticks in worst if count},
    )


def ways_of(node: View) -> tuple[WayStats, ...]:
    """Return the ways of large calls, from the record of a rank's node."""
    from cobre_kernels.shm import ways  # loaded already, unless the backend has no ways

    calls = {number: node.large[number].calls for number in range(LARGE_ROWS)}
    return tuple(
        WayStats(
            OPERATIONS[ways.OPERATIONS[number // SIZES]],
            1 << ways.LEAST_SHIFT + number % SIZES,
            count,
            *_decision(node.large[number], ways.NAMES, ways.TRIALS),
        )
        for number, count in calls.items()
        if count
    )


def _decision(row: View, names: Sequence[str], trials: int) -> tuple[str, dict[str, float]]:
    """Return the way that a row of large calls has, and the seconds of all ways."""
    if row.calls <= trials * (1 + row.ways):
        return TRYING, {}
    return names[row.way], {names[w]: row.tried[w].second_ns / NS_PER_S for w in range(row.ways)}
