"""The figures of records and of JSON files of pytest-benchmark: read, kept, merged over runs.

A record is a file of several runs. Each run is a JSON of pytest-benchmark with only the facts that
a page shows, one line for each figure. A page shows the median over the runs. A ratio is built
within each run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from statistics import median

from bench.peers import PEERS
from bench.plan import OURS
from bench.recording import too_few

RECORDED = Path(__file__).parents[1] / "recorded"
MACHINE = (
    "cpu_model", "cores", "usable_cores", "caches", "memory_bytes", "kernel", "versions",
    "load_before", "command", "commit", "commit_dirty",
)  # fmt: skip
DIGITS = 6
MOST_RUNS = 5  # the newest runs of a record, which stay


@dataclass(frozen=True)
class Ratio:
    """Our median / a peer's median: in one run, with quartiles over neighbouring blocks.

    Over several runs it is the median of the ratios, with the lowest and the highest ratio.
    """

    median: float
    low: float
    high: float
    runs: int = 1


@dataclass(frozen=True)
class Record:
    """One side of one row, with the names that the JSON has. Times are seconds per call."""

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
    blocks: int | None = None  # the number of blocks from which the percentiles come
    # in all blocks; None for a figure without blocks of calls, such as a start
    calls: int | None = None
    # p50_s or value of each run, by the time of the run
    by_run: dict[str, float] = field(default_factory=dict)

    @property
    def ours(self) -> bool:
        return self.side == OURS

    @property
    def job(self) -> tuple[int, str, str]:
        """The job in which the record was measured."""
        return self.ranks, self.beside or "", self.setting

    @property
    def identity(self) -> tuple:
        return self.label, self.operation, self.job, self.side, self.backend


SHOWN = tuple(each.name for each in fields(Record) if each.name != "by_run")


@dataclass(frozen=True)
class Run:
    """One run of a file, without the benchmarks of the run."""

    path: str
    when: str
    machine: dict


@dataclass
class Results:
    """The records of all files; if a figure was measured twice, the later record counts."""

    records: list[Record] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    def of_record(self, path: str) -> list[Run]:
        """Return the runs of a record."""
        return [run for run in self.runs if run.path == path]

    def find(self, *, words: Iterable[str] = (), **wanted: object) -> list[Record]:
        """Return the records with all words in operation and label, and with these attributes.

        An attribute whose value is None may have any value.
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
    """Add the facts of a run that pages show to the run's record; return the record's path."""
    told = json.loads(path.read_text())
    machine = {name: told["machine_info"].get(name) for name in MACHINE}
    figures = [thin(benchmark["extra_info"]) for benchmark in told["benchmarks"]]
    return add_run(RECORDED / path.name, told["datetime"][:19], machine, figures)


def add_run(path: Path, when: str, machine: dict, figures: list[dict]) -> Path:
    """Add a run to a record, in place of a run of the same time; only the newest runs stay."""
    run = {"datetime": when, "machine_info": machine,
           "benchmarks": [{"extra_info": figure} for figure in figures]}  # fmt: skip
    known = runs_of(path) if path.exists() else []
    runs = sorted([*(each for each in known if each["datetime"] != when), run], key=time_of)
    lines = ",\n".join(map(_lines_of, runs[-MOST_RUNS:]))
    path.write_text(f'{{"runs": [\n{lines}\n]}}\n')
    return path


def runs_of(path: Path) -> list[dict]:
    """Return the runs of a record; of a JSON of pytest-benchmark, its only run."""
    told = json.loads(path.read_text())
    return told.get("runs", [told])


def time_of(run: dict) -> str:
    return run["datetime"]


def _lines_of(run: dict) -> str:
    """Return a run as JSON, with a line for each figure."""
    when, machine = (json.dumps(run[name]) for name in ("datetime", "machine_info"))
    lines = ",\n".join(map(json.dumps, run["benchmarks"]))
    return f'{{"datetime": {when},\n"machine_info": {machine},\n"benchmarks": [\n{lines}\n]}}'


def thin(info: dict) -> dict:
    """Return the facts of a figure that a page shows, with fewer digits."""

    def rounded(value: object) -> object:
        if isinstance(value, dict):
            return {name: rounded(each) for name, each in value.items()}
        return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value

    return {name: rounded(info[name]) for name in SHOWN if info.get(name) not in (None, "", {})}


def load(paths: Iterable[Path]) -> Results:
    """Read and merge the files, in the order of the last run of each file."""
    files = [(path.name, sorted(runs_of(path), key=time_of)) for path in paths]
    files.sort(key=lambda item: time_of(item[1][-1]))
    results, merged = Results(), {}
    for name, runs in files:
        found: dict[tuple, dict[str, Record]] = {}
        for run in runs:
            when = time_of(run)
            results.runs.append(Run(name, when, run["machine_info"]))
            for benchmark in run["benchmarks"]:
                record = figure_of(benchmark["extra_info"])
                if not too_few(record.blocks, record.calls):
                    found.setdefault(record.identity, {})[when] = record
        merged |= {identity: over_runs(by_run) for identity, by_run in found.items()}
    results.records = list(merged.values())
    return results


def over_runs(by_run: dict[str, Record]) -> Record:
    """Return the figure of several runs: medians over the runs, also for ratios."""
    *_, last = by_run.values()
    medians = {}
    for name in ("p50_s", "p99_s", "bytes_per_s", "value"):
        known = [x for each in by_run.values() if (x := getattr(each, name)) is not None]
        medians[name] = median(known) if known else None
    return replace(
        last,
        **medians,
        ratio_to={
            peer: over_ratios([r.ratio_to[peer] for r in by_run.values() if peer in r.ratio_to])
            for peer in last.ratio_to
        },
        by_run={when: r.p50_s if r.value is None else r.value for when, r in by_run.items()},
    )


def over_ratios(ratios: list[Ratio]) -> Ratio:
    """Return the median and the span of the ratios of several runs; for one run, its ratio."""
    if len(ratios) == 1:
        return ratios[0]
    medians = [each.median for each in ratios]
    return Ratio(median(medians), min(medians), max(medians), len(medians))


def figure_of(info: dict) -> Record:
    """Return the record of a figure, from its ``extra_info``."""
    told = {name: value for name, value in info.items() if name in SHOWN and value is not None}
    told["ratio_to"] = {name: Ratio(**r) for name, r in told.get("ratio_to", {}).items()}
    if "value" in told:  # a figure that has a unit of its own is no time
        told |= {"p50_s": None, "p99_s": None}
    return Record(**told)
