"""The figures of one or several JSON files of pytest-benchmark, merged for the report.

A recorded file is such a JSON with only the facts that a page shows, one line for each figure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path

from bench.peers import PEERS
from bench.plan import OURS
from bench.recording import too_few

RECORDED = Path(__file__).parents[1] / "recorded"
MACHINE = (
    "cpu_model", "cores", "usable_cores", "caches", "memory_bytes", "kernel", "versions",
    "load_before", "command", "commit", "commit_dirty",
)  # fmt: skip
DIGITS = 6


@dataclass(frozen=True)
class Ratio:
    """Ours / a peer's: the ratio of medians, and the quartiles of that of neighbouring blocks."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Record:
    """One side of one row, with the names of the JSON. Times are seconds per call."""

    label: str
    operation: str
    side: str
    bytes: int = 0
    ranks: int = 1
    beside: str | None = None
    setting: str = ""
    backend: str | None = None
    p50_s: float | None = None
    p99_s: float | None = None
    bytes_per_s: float | None = None
    ratio_to: dict[str, Ratio] = field(default_factory=dict)
    value: float | None = None
    unit: str = ""
    command: str = ""
    blocks: int | None = None  # of whose times the percentiles are
    calls: int | None = None  # in all blocks; None of what is no block of calls, such as a start

    @property
    def ours(self) -> bool:
        return self.side == OURS

    @property
    def job(self) -> tuple[int, str, str]:
        """The processes it was measured in."""
        return self.ranks, self.beside or "", self.setting

    @property
    def identity(self) -> tuple:
        return self.label, self.operation, self.job, self.side, self.backend


SHOWN = tuple(each.name for each in fields(Record))


@dataclass(frozen=True)
class Run:
    """One JSON file without its benchmarks."""

    path: str
    when: str
    machine: dict
    figures: int


@dataclass
class Results:
    """The records of all files; of a figure that was measured twice, the last."""

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


def job_order(job: tuple[int, str, str]) -> tuple:
    """Return the sort key of a job: by ranks, then by peer (none last), then by setting."""
    ranks, beside, setting = job
    known = list(PEERS)
    return ranks, known.index(beside) if beside in known else len(known), setting


def job_title(ranks: int, beside: str | None, setting: str = "") -> str:
    """Return the title of a job, such as ``2 ranks, beside Open MPI``."""
    words = [f"{ranks} rank{'s' if ranks != 1 else ''}"]
    words += [f"beside {PEERS.get(beside, beside)}"] if beside else []
    return ", ".join([*words, setting] if setting else words)


def keep(path: Path) -> Path:
    """Record the facts of a file that pages need; return the path of the recorded file."""
    told = json.loads(path.read_text())
    machine = {name: told["machine_info"].get(name) for name in MACHINE}
    figures = [thin(benchmark["extra_info"]) for benchmark in told["benchmarks"]]
    return write(RECORDED / path.name, told["datetime"][:19], machine, figures)


def write(path: Path, when: str, machine: dict, figures: list[dict]) -> Path:
    """Write a recorded file, a line for each figure."""
    lines = ",\n".join(f'{{"extra_info": {json.dumps(figure)}}}' for figure in figures)
    head = f'{{"datetime": {json.dumps(when)},\n"machine_info": {json.dumps(machine)},\n'
    path.write_text(f'{head}"benchmarks": [\n{lines}\n]}}\n')
    return path


def thin(info: dict) -> dict:
    """Return the facts of a figure that a page shows, with fewer digits."""

    def rounded(value: object) -> object:
        if isinstance(value, dict):
            return {name: rounded(each) for name, each in value.items()}
        return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value

    return {name: rounded(info[name]) for name in SHOWN if info.get(name) not in (None, "", {})}


def load(paths: list[Path]) -> Results:
    """Read and merge the files, the oldest first, in whatever order they are given."""
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
                len(told.get("benchmarks", [])),
            )
        )
        for benchmark in told.get("benchmarks", []):
            record = figure_of(benchmark.get("extra_info") or {})
            if not too_few(record.blocks, record.calls):
                merged[record.identity] = record
    results.records = list(merged.values())
    return results


def figure_of(info: dict) -> Record:
    """Return the record of a figure, from its ``extra_info``."""
    told = {name: value for name, value in info.items() if name in SHOWN and value is not None}
    told["ratio_to"] = {name: Ratio(**r) for name, r in told.get("ratio_to", {}).items()}
    if "value" in told:  # a figure with a unit of its own is not a time
        told |= {"p50_s": None, "p99_s": None}
    return Record(**told)
