"""The performance targets as data, and what a run has to show for each.

A target of the first table is a ratio of medians, our time / the library's, of the same run. The
others name what they look for in the results by words of the operation and label, the ranks and
the peer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.plan import LIBRARIES
from bench.report.data import Record, Results

# What the rows are measured of: our backend, called from Python.
BACKEND = "shm"
OPERATIONS = {"barrier", "allreduce", "allgatherv", "broadcast", "sddp"}

# With 4 ranks on 2 cores the target is one, beside either library; both are shown.
COLUMNS = [(2, "openmpi"), (2, "mpich"), (4, "openmpi"), (4, "mpich")]

# label: (2 ranks beside Open MPI, 2 ranks beside MPICH, 4 ranks beside either)
ROWS = {
    "barrier": (1.0, 0.3, 0.9),
    "allreduce 8 B": (0.6, 0.3, 0.9),
    "allreduce 32 B": (0.6, 0.3, 0.9),
    "allreduce 4 KiB": (0.5, 0.3, 0.6),
    "allreduce 32 KiB": (0.8, 0.7, 0.8),
    "allreduce 512 KiB": (0.8, 0.7, 0.8),
    "allreduce 8 MiB": (0.9, 0.9, 0.9),
    "allgatherv 32 B": (0.5, 0.4, 0.8),
    "allgatherv 4 KiB": (0.5, 0.4, 0.8),
    "allgatherv 200 kB": (0.95, 0.6, 0.9),
    "allgatherv 12.9 MB": (0.95, 0.6, 0.9),
    "broadcast 10 kB": (0.8, 0.8, 0.9),
    "broadcast 8 MiB": (0.8, 0.8, 0.9),
    "one SDDP iteration": (0.9, 0.5, 0.85),
}


@dataclass(frozen=True)
class Outcome:
    """A target and the figure beside it; the figure is None if it was not measured."""

    row: str
    limit: float
    ranks: int | None = None
    beside: str | None = None
    unit: str = ""
    at_least: bool = False
    value: float | None = None
    low: float | None = None
    high: float | None = None
    detail: str = ""
    command: str = ""

    @property
    def holds(self) -> bool | None:
        if self.value is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def grid(results: Results) -> dict[str, list[Outcome]]:
    """Return the first table: for each row one outcome per column."""
    return {label: [_cell(results, label, *column) for column in COLUMNS] for label in ROWS}


def _cell(results: Results, label: str, ranks: int, beside: str) -> Outcome:
    limit = ROWS[label][COLUMNS.index((ranks, beside)) if ranks == 2 else 2]
    found = [
        record
        for record in results.find(
            label=label, ranks=ranks, beside=beside, setting="", backend=BACKEND
        )
        if record.ours and LIBRARIES[beside] in record.ratios and record.operation in OPERATIONS
    ]
    if not found:
        return Outcome(label, limit, ranks, beside)
    ratio = found[-1].ratios[LIBRARIES[beside]]
    return Outcome(
        label, limit, ranks, beside, "", False, ratio.median, ratio.low, ratio.high,
        command=found[-1].command,
    )  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A target outside the first table.

    Attributes
    ----------
    row : str
        Its name, by which notes.toml speaks of it.
    limit : float
        What the figure must not pass; with `at_least`, must reach.
    words : tuple of str
        All of them stand in the operation or label of the benchmark.
    peer : str
        Part of the peer's name, if the figure is a ratio.
    inverse : bool
        Whether the figure is the peer's time / ours.
    without : tuple of str
        None of them stands in the label.
    """

    row: str
    limit: float
    words: tuple[str, ...]
    unit: str = ""
    ranks: int | None = None
    beside: str | None = None
    peer: str | None = None
    at_least: bool = False
    inverse: bool = False
    without: tuple[str, ...] = ()

    def outcomes(self, results: Results) -> list[Outcome]:
        """Return an outcome for each benchmark that matches, or one without a figure."""
        asked = results.find(words=self.words, ranks=self.ranks, beside=self.beside, setting="")
        asked = [record for record in asked if not any(w in record.label for w in self.without)]
        made = [self._outcome(record) for record in asked if record.ours]
        return [outcome for outcome in made if outcome] or [
            Outcome(self.row, self.limit, self.ranks, self.beside, self.unit, self.at_least)
        ]

    def _outcome(self, record: Record) -> Outcome | None:
        figure = self._figure(record)
        if figure is None:
            return None
        value, low, high = figure
        return Outcome(
            self.row, self.limit, record.ranks, record.beside, self.unit, self.at_least,
            value, low, high, record.label, record.command,
        )  # fmt: skip

    def _figure(self, record: Record) -> tuple[float, float | None, float | None] | None:
        if self.peer is None:
            value = record.p50 if record.value is None else record.value
            return None if value is None else (value, None, None)
        for name, ratio in record.ratios.items():
            if self.peer in name:
                if self.inverse:
                    return 1 / ratio.median, 1 / ratio.high, 1 / ratio.low
                return ratio.median, ratio.low, ratio.high
        return None


@dataclass(frozen=True)
class Growth:
    """A target on two figures of ours: how much more one is than the other."""

    row: str
    limit: float
    words: tuple[str, ...]
    ends: tuple[int, int]
    of: Callable[[Record], tuple[int, float]]
    beside: str | None = None

    def outcomes(self, results: Results) -> list[Outcome]:
        """Return one outcome per job that has both ends, or one without a figure."""
        points: dict[tuple, dict[int, Record]] = {}
        for record in results.find(words=self.words, setting=""):
            if record.ours and record.p50 is not None:
                at, _ = self.of(record)
                series = record.beside, record.ranks if self.of is per_byte else None
                points.setdefault(series, {})[at] = record
        made = []
        for (beside, ranks), series in points.items():
            if all(end in series for end in self.ends):
                first, last = (self.of(series[end])[1] for end in self.ends)
                record = series[self.ends[1]]
                made.append(
                    Outcome(
                        self.row,
                        self.limit,
                        ranks,
                        beside,
                        value=last / first,
                        detail=record.label,
                        command=record.command,
                    )
                )
        return made or [Outcome(self.row, self.limit)]


def per_byte(record: Record) -> tuple[int, float]:
    """Return the size of a call in MiB, and seconds per byte."""
    return round(record.nbytes / 2**20), (record.p50 or 0) / max(record.nbytes, 1)


def per_rank_count(record: Record) -> tuple[int, float]:
    """Return the number of ranks, and seconds per call."""
    return record.ranks, record.p50 or 0


OTHERS: dict[str, list[Target | Growth]] = {
    "In @njit loops": [
        Target(
            "njit barrier / numba-mpi", 0.25, ("njit", "barrier"),
            ranks=2, beside="openmpi", peer="numba-mpi", without=("+",),
        ),
        Target(
            "njit allreduce 32 B / numba-mpi", 0.25, ("njit", "allreduce", "32 B"),
            ranks=2, beside="openmpi", peer="numba-mpi", without=("+",),
        ),
        Target(
            "njit barrier / cache-line round trip", 0.8, ("njit", "barrier"),
            ranks=2, peer="ping-pong", without=("+",),
        ),
    ],
    "The limit of memcpy": [
        Target("allgatherv 200 kB / memcpy limit", 1.25, ("allgatherv 200 kB",), peer="memcpy"),
        Target("allgatherv 12.9 MB / memcpy limit", 1.25, ("allgatherv 12.9 MB",), peer="memcpy"),
    ],
    "Regions": [
        Target(
            "allgatherv / distributed population + fence", 5, ("region",),
            peer="allgatherv", at_least=True, inverse=True,
        ),
    ],
    "Waiting": [
        Target(
            "a rank that waits for a late peer", 0.02, ("wait",), unit="cores",
            without=("over tcp", "over mpi"),
        ),
        Target(
            "barrier, 8 ranks / bare context switches", 3, ("barrier",),
            ranks=8, peer="context switch",
        ),
    ],
    "Starting": [
        Target("import cobre_comm", 0.35, ("start", "import"), unit="s"),
        Target("first collective, warm", 0.5, ("start", "first collective"), unit="s"),
        Target("cobre-comm run -n 4 examples/hello_ranks.py, warm", 2, ("start", "hello"), "s"),
        Target("compile everything, cold", 30, ("start", "everything"), unit="s"),
    ],
    "Growth": [
        Growth(
            "allgatherv per byte, 256 MiB / 16 MiB", 1.3, ("growth", "MiB"), (16, 256), per_byte,
        ),
        Growth("barrier, 16 ranks / 2 ranks", 8, ("growth", "barrier"), (2, 16), per_rank_count),
    ],
}  # fmt: skip


def others(results: Results) -> dict[str, list[Outcome]]:
    """Return the outcomes of the other targets, by section."""
    return {
        section: [outcome for target in targets for outcome in target.outcomes(results)]
        for section, targets in OTHERS.items()
    }
