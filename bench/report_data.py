"""What the report reads: the benchmarks of one or several pytest-benchmark JSON files, merged."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

OURS = "cobre_comm"
LIBRARY = {"openmpi": "Open MPI", "mpich": "MPICH"}


@dataclass(frozen=True)
class Ratio:
    """Ours / a peer's, of neighbouring blocks: median and quartiles."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Record:
    """One side of one case: a benchmark of the JSON. Times are seconds per call."""

    label: str
    operation: str
    nbytes: int
    moved: int | None
    ranks: int
    beside: str | None
    side: str
    backend: str | None
    p50: float | None
    p99: float | None
    bytes_per_s: float | None
    ratios: dict[str, Ratio]
    value: float | None
    unit: str
    command: str

    @property
    def ours(self) -> bool:
        return self.side == OURS

    @property
    def job(self) -> tuple[int, str]:
        """The processes it was measured in."""
        return self.ranks, self.beside or ""

    @property
    def identity(self) -> tuple:
        return self.label, self.operation, self.ranks, self.beside, self.side, self.backend


@dataclass(frozen=True)
class Run:
    """One JSON file without its benchmarks."""

    path: str
    when: str
    machine: dict
    commit: dict


@dataclass
class Results:
    """The records of all files; of those measured twice, the last."""

    records: list[Record] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    def find(self, *, words: Iterable[str] = (), **wanted: object) -> list[Record]:
        """Return the records with all words in operation and label, and with these attributes.

        An attribute that is None is not asked for.
        """
        asked = {name: value for name, value in wanted.items() if value is not None}
        return [
            record
            for record in self.records
            if all(word in f"{record.operation} {record.label}" for word in words)
            and all(getattr(record, name) == value for name, value in asked.items())
        ]


def job_order(job: tuple[int, str]) -> tuple:
    """Sort by ranks, then Open MPI, MPICH, and what was measured beside none."""
    ranks, beside = job
    return ranks, list(LIBRARY).index(beside) if beside in LIBRARY else len(LIBRARY), beside


def job_title(ranks: int, beside: str | None) -> str:
    """Return such as ``2 ranks, beside Open MPI``."""
    title = f"{ranks} rank{'s' if ranks != 1 else ''}"
    return f"{title}, beside {LIBRARY.get(beside, beside)}" if beside else title


def load(paths: list[Path]) -> Results:
    """Read and merge the files, oldest first whatever their order on the command line."""
    files = [(path, json.loads(path.read_text())) for path in paths]
    files.sort(key=lambda item: item[1].get("datetime", ""))
    merged: dict[tuple, Record] = {}
    results = Results()
    for path, told in files:
        results.runs.append(
            Run(
                path.name,
                told.get("datetime", ""),
                told.get("machine_info") or {},
                told.get("commit_info") or {},
            )
        )
        for benchmark in told.get("benchmarks", []):
            record = _record(benchmark)
            if record is not None:
                merged[record.identity] = record
    results.records = list(merged.values())
    return results


def _record(benchmark: dict) -> Record | None:
    info = benchmark.get("extra_info") or {}
    missing = [name for name in ("label", "operation", "side") if not info.get(name)]
    if missing:
        print(f"{benchmark.get('name')}: left out, without {missing}", file=sys.stderr)
        return None
    stats = benchmark.get("stats") or {}
    # A figure with a unit of its own is no time, whatever the clock showed.
    timed = info.get("value") is None
    return Record(
        label=info["label"],
        operation=info["operation"],
        nbytes=int(info.get("bytes") or 0),
        moved=info.get("moved_bytes"),
        ranks=int(info.get("ranks") or 1),
        beside=info.get("beside"),
        side=info["side"],
        backend=info.get("backend"),
        p50=info.get("p50_s", stats.get("median")) if timed else None,
        p99=info.get("p99_s") if timed else None,
        bytes_per_s=info.get("bytes_per_s"),
        ratios={name: Ratio(**told) for name, told in (info.get("ratio_to") or {}).items()},
        value=info.get("value"),
        unit=info.get("unit") or "",
        command=info.get("command") or "",
    )
