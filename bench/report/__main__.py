"""Write the report of a run of pytest-benchmark: REPORT.md, its plots, the tables of docs.

    python -m pytest bench --benchmark-json=bench/results/essentials.json
    python -m bench.report bench/results/essentials.json

The facts that pages need are added to the record in `bench/recorded` that has the name of the file;
a record keeps five runs. Pages show the median over the runs of a record, and their span: REPORT.md
shows the record `essentials.json`, the tables of the README and of docs show all records.
Without arguments the pages are written again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.plan import OURS
from bench.report.data import RECORDED, Results, keep, load
from bench.report.head import head
from bench.report.notes import footnotes, number_misses, read_notes, unexplained
from bench.report.outcomes import Outcome
from bench.report.plots import draw, save, speed_plot
from bench.report.tables import (
    counts,
    miss_list,
    other_table,
    peer_table,
    target_table,
)
from bench.report.targets import grid, others
from bench.report.text import with_contents
from docs import refresh

HERE = Path(__file__).parent
PAGE = HERE.parent / "REPORT.md"
REPORTED = RECORDED / "essentials.json"

HOW_TO_READ = f"""\
A figure is the time of {OURS} divided by that of the peer. Both are measured in the same processes,
where they take turns block by block. The ratio is that of the medians, and the quartiles are those
of the ratios of neighbouring blocks. Each run has its own ratios: of several runs, a figure is the
median, and its span stands beside it. A block is many calls, and its time is that of the slowest
rank, divided by the number of calls; p50 and p99 are over the blocks. Buffers rotate, and every
result is verified after it is timed. *Fresh data* means that all ranks write anew, between the
calls and untimed, what they send, so that no rank finds a peer's data in its own cache.

Each cell names the peer that is the fastest there, with which our ratio is the largest. The target
stands in parentheses. **Bold** is a miss, with the number of its [note](#misses)."""

EACH_PEER = """\
These are ratios as above, with fresh data, and in parentheses with the same data in each call. Open
MPI stands here as delivered, and with its components `coll/sm` or `coll/han` as first choice."""

ALL_FIGURES = """\
`bench/recorded` has a line for every figure of a run, with its p99 and its bytes per second, and
with the command that repeats it alone."""


def report(results: Results, notes: Path, figures: Path) -> str:
    """Draw the plots; return the Markdown, which links to the plots as ``figures/...``."""
    rows, sections = grid(results), others(results)
    outcomes = [each for part in (rows, sections) for found in part.values() for each in found]
    entries = read_notes(notes)
    if refused := unexplained(rows_of(rows, sections), entries):
        sys.exit("no report: " + "\n".join(refused))
    misses = number_misses(outcomes, entries)
    marks = footnotes(misses)
    plots = draw(results, rows, figures)
    parts = ["## The run", head(results), "## Targets", HOW_TO_READ, counts(rows)]
    parts += [target_table(rows, marks), _image("targets.png", plots)]
    parts += ["## Each peer", EACH_PEER, peer_table(results, 2), peer_table(results, 4)]
    parts += ["## Other targets"]
    for section, found in sections.items():
        parts += [f"### {section}", other_table(found, marks)]
    parts += ["## Misses", miss_list(misses), "## Plots"]
    parts += [_image(name, plots) for name in plots if name != "targets.png"] or ["None."]
    parts += ["## All figures", ALL_FIGURES]
    return with_contents("# Performance report", "\n\n".join(part for part in parts if part))


def rows_of(
    grid: dict[str, list[Outcome]], sections: dict[str, list[Outcome]]
) -> list[list[Outcome]]:
    """Return the outcomes of each row: those of the first table, and of targets on the same row."""
    named: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in (each for found in sections.values() for each in found):
        named.setdefault((outcome.row, outcome.detail), []).append(outcome)
    return [*grid.values(), *named.values()]


def _image(name: str, plots: dict[str, str]) -> str:
    return f"![{plots[name]}](figures/{name})" if name in plots else ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.report", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("results", type=Path, nargs="*", help="JSON of pytest-benchmark")
    for path in parser.parse_args().results:
        print(keep(path))
    if not REPORTED.exists():
        sys.exit(f"no figures in {REPORTED}: make bench")
    results = load([REPORTED])
    PAGE.write_text(report(results, HERE / "notes.toml", PAGE.parent / "figures"))
    recorded = load(sorted(RECORDED.glob("*.json")))
    if speed := speed_plot(recorded):
        save(speed, PAGE.parent / "figures" / "speed.png")
    print(PAGE, *refresh.write(), sep="\n")


if __name__ == "__main__":
    main()
