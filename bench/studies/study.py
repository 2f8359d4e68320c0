"""The common part of studies: options, jobs, a printed table, noted lines, recorded figures.

A study whose jobs take minutes notes each job's samples at once, as a line of JSON in `--file`.
With `--record` it measures nothing, and records the figures of that file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench import machine
from bench.jobs import Jobs
from bench.plan import Figure, Job, Options
from bench.recording import extra_info
from bench.report.data import MACHINE, RECORDED, Results, figure_of, thin, write
from bench.report.pages import Table


def parser_of(
    description: str | None, ranks: Sequence[int] = (), rounds: int = 15, block: float = 0.05
) -> argparse.ArgumentParser:
    """Return a parser of the options that studies have in common."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=raw)
    add = parser.add_argument
    if ranks:
        add("-n", type=int, nargs="+", default=list(ranks), dest="ranks", help="numbers of ranks")
    add("--rounds", type=int, default=rounds, help=f"blocks of each side (default: {rounds})")
    add("--block", type=float, default=block, help=f"seconds of a block (default: {block})")
    add("--only", default="", metavar="WORD", help="only rows with this in their label")
    add("--record", action="store_true", help="keep the figures in bench/recorded")
    return parser


def add_notes(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the options of a study that notes lines in a file."""
    file = Path(f"bench/results/{name}.jsonl")
    parser.add_argument("--file", type=Path, default=file, help=f"of noted lines (default: {file})")
    parser.add_argument("--commit", help="of the measured version, where it is no checkout")


def note(file: Path, line: dict) -> None:
    """Add a line to the file of a study."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        lines.write(json.dumps(line) + "\n")


def record_notes(
    name: str, options: argparse.Namespace, infos_of: Callable[[dict], Iterable[dict]]
) -> None:
    """Record the figures that each line of a study's file has; ``bench.report`` shows them."""
    lines = [json.loads(line) for line in options.file.read_text().splitlines()]
    known = next(line["machine"] for line in lines if "machine" in line)
    known |= {"command": f"python -m bench.studies {name}"}
    if options.commit:
        known |= {"commit": options.commit, "commit_dirty": False}
    _record(name, known, [thin(info) for line in lines for info in infos_of(line)])


def measure(
    name: str,
    figures: Sequence[Figure],
    options: argparse.Namespace,
    table: Table,
    start: Callable[[Job, list, Options], dict] | None = None,
) -> None:
    """Measure figures, print their table and, if asked to, record them under the study's name."""
    how_long = Options(options.rounds, options.block, most_s=60.0)
    asked = [figure for figure in figures if options.only in figure.label]
    jobs = Jobs(asked, how_long, print, start)
    told = [jobs.told(figure) for figure in asked]
    infos = [thin(extra_info(**each)) for each in told if each]
    results = Results([figure_of(info) for info in infos])
    print(f"\n{table.unit}; ratios are medians\n\n{table.text(results)}")
    if options.record:
        _record(name, machine.description(), infos)


def _record(name: str, known: dict, infos: list[dict]) -> None:
    when = datetime.now(UTC).isoformat(timespec="seconds")[:19]
    print(write(RECORDED / f"{name}.json", when, {key: known[key] for key in MACHINE}, infos))
