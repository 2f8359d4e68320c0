"""The common part of studies: options, jobs, a printed table, recorded figures."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from bench import machine
from bench.jobs import Jobs
from bench.plan import Figure, Job, Options
from bench.recording import extra_info
from bench.report.data import MACHINE, RECORDED, Results, figure_of, thin, write
from bench.report.pages import Table


def parser_of(description: str, ranks: Sequence[int]) -> argparse.ArgumentParser:
    """Return a parser of the options that studies have in common."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=raw)
    add = parser.add_argument
    add("-n", type=int, nargs="+", default=list(ranks), dest="ranks", help="numbers of ranks")
    add("--rounds", type=int, default=15, help="blocks of each side (default: 15)")
    add("--block", type=float, default=0.05, help="seconds of a block (default: 0.05)")
    add("--only", default="", metavar="WORD", help="only rows with this in their label")
    add("--record", action="store_true", help="keep the figures in bench/recorded")
    return parser


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
        known = machine.description()
        facts = {key: known[key] for key in MACHINE}
        when = datetime.now(UTC).isoformat(timespec="seconds")[:19]
        print(write(RECORDED / f"{name}.json", when, facts, infos))
