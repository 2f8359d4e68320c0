"""The performance targets as data, and what a run has to show for each.

A target of the first table is a ratio of medians, our time / the library's, of the same run. The
others name what they look for in the results by words of the operation and label, the ranks and
the peer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bench.peers import LIBRARIES
from bench.report.data import Ratio, Record, Results

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
    target = Outcome(label, limit, ranks, beside)
    asked = results.find(label=label, ranks=ranks, beside=beside, setting="", backend=BACKEND)
    found = [r.ratio_to.get(LIBRARIES[beside]) for r in asked if r.operation in OPERATIONS]
    ratio = found[-1] if found else None
    return _with_ratio(target, ratio) if ratio else target


def _with_ratio(target: Outcome, ratio: Ratio) -> Outcome:
    return replace(target, value=ratio.median, low=ratio.low, high=ratio.high)


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
        target = Outcome(
            self.row, self.limit, self.ranks, self.beside, self.unit, self.at_least
        )  # fmt: skip
        asked = results.find(words=self.words, ranks=self.ranks, beside=self.beside, setting="")
        asked = [r for r in asked if r.ours and not any(w in r.label for w in self.without)]
        made = [
            self._outcome(replace(target, ranks=r.ranks, beside=r.beside, detail=r.label), r)
            for r in asked
        ]
        return [each for each in made if each.value is not None] or [target]

    def _outcome(self, target: Outcome, record: Record) -> Outcome:
        if self.peer is None:
            return replace(target, value=record.p50_s if record.value is None else record.value)
        ratio = next((r for name, r in record.ratio_to.items() if self.peer in name), None)
        if ratio and self.inverse:
            ratio = Ratio(1 / ratio.median, 1 / ratio.high, 1 / ratio.low)
        return _with_ratio(target, ratio) if ratio else target


@dataclass(frozen=True)
class Growth:
    """A target on two figures of ours: how much more one is than the other.

    Both are named by label and ranks; ``per_byte`` divides them by their bytes.
    """

    row: str
    limit: float
    first: tuple[str, int]
    last: tuple[str, int]
    per_byte: bool = False

    def outcomes(self, results: Results) -> list[Outcome]:
        """Return the outcome, without a figure if one of the two is missing."""
        ends = []
        for label, ranks in (self.first, self.last):
            found = results.find(label=label, ranks=ranks, operation="growth", setting="")
            ends += [r for r in found if r.ours][-1:]
        if len(ends) < 2:
            return [Outcome(self.row, self.limit)]
        first, last = (r.p50_s / (r.bytes if self.per_byte else 1) for r in ends)
        same = ends[0].job == ends[1].job
        where = (ends[1].ranks, ends[1].beside) if same else (None, ends[1].beside)
        return [
            Outcome(self.row, self.limit, *where, value=last / first, detail=ends[1].label)
        ]  # fmt: skip


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
            "allgatherv per byte, 256 MiB / 16 MiB", 1.3, ("allgatherv 16 MiB in all", 2),
            ("allgatherv 256 MiB in all", 2), per_byte=True,
        ),
        Growth("barrier, 16 ranks / 2 ranks", 8, ("barrier", 2), ("barrier", 16)),
    ],
}  # fmt: skip


def others(results: Results) -> dict[str, list[Outcome]]:
    """Return the outcomes of the other targets, by section."""
    return {
        section: [outcome for target in targets for outcome in target.outcomes(results)]
        for section, targets in OTHERS.items()
    }
