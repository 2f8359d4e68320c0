"""Make the performance report of what pytest-benchmark measured: a page, Markdown and plots.

    python -m pytest bench --benchmark-json=RESULTS.json
    python bench/report.py RESULTS.json [MORE.json ...] [--out bench/report]
                           [--markdown bench/REPORT.md] [--notes bench/notes.toml]

The page, OUT/index.html, stands alone. The Markdown has the same tables and links to the plots,
which are written to the folder `figures` beside it. Files given together are merged; of benchmarks
measured twice the later file's count. What was not measured is named as such.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from report_data import OURS, Results, load
from report_head import head
from report_notes import footnotes, number_misses, read_notes
from report_page import page
from report_plots import draw
from report_tables import all_figures, counts, miss_list, other_table, target_table
from targets import grid, others

HERE = Path(__file__).parent

HOW_TO_READ = f"""\
A figure is a ratio of times, {OURS} / the peer, both measured in the same processes, where they
took turns block by block: median, and quartiles, of the ratios of neighbouring blocks. A block is
many calls; its time is the slowest rank's, divided by the calls; p50 and p99 are over the blocks.
Buffers rotate, and every result is verified after it is timed. In a cell the target stands in
parentheses; **bold** is a miss, with the number of its [note](#misses)."""


def report(results: Results, notes: Path, figures: Path) -> str:
    """Draw the plots and return the Markdown that links to them as ``figures/...``."""
    rows, sections = grid(results), others(results)
    outcomes = [each for part in (rows, sections) for found in part.values() for each in found]
    misses = number_misses(outcomes, read_notes(notes))
    marks = footnotes(misses)
    plots = draw(results, rows, figures)
    parts = ["# Performance report", head(results), "## Targets", HOW_TO_READ, counts(rows)]
    parts += [target_table(rows, marks), _image("targets.svg", plots), "## Other targets"]
    for section, found in sections.items():
        parts += [f"### {section}", other_table(found, marks)]
    parts += ["## Misses", miss_list(misses), "## Plots"]
    parts += [_image(name, plots) for name in plots if name != "targets.svg"] or ["None."]
    parts += ["## All figures", ALL_FIGURES, all_figures(results)]
    return "\n\n".join(part for part in parts if part) + "\n"


ALL_FIGURES = """\
Ours is named by its backend. GB/s is what a rank receives. Beneath each table: the commands that
repeat one measurement alone, from the repository's root."""


def _image(name: str, plots: dict[str, str]) -> str:
    return f"![{plots[name]}](figures/{name})" if name in plots else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, nargs="+", help="JSON of pytest-benchmark")
    parser.add_argument("--out", type=Path, default=HERE / "report", help="folder of the page")
    parser.add_argument("--markdown", type=Path, default=HERE / "REPORT.md")
    parser.add_argument("--notes", type=Path, default=HERE / "notes.toml")
    options = parser.parse_args()
    results = load(options.results)
    if not results.records:
        sys.exit("no benchmark of ours in these files")
    folder = options.markdown.parent
    text = report(results, options.notes, folder / "figures")
    options.markdown.write_text(text)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "index.html").write_text(page(text, folder))
    print(f"{options.markdown}\n{options.out / 'index.html'}")


if __name__ == "__main__":
    main()
