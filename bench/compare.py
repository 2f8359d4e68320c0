"""Compare two runs: figures that have become slower beside their peers come first.

    python -m bench.compare before.json after.json
    python -m bench.compare after.json     # with what is recorded under that name

A file is from `bench/results` or `bench/recorded`, or it is any JSON of pytest-benchmark.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from bench.report.data import RECORDED, Record, Results, job_title, load
from bench.report.text import figure, number, table

WORSE = 1.1  # a ratio that has grown by more than this is a regression
HEADER = ["", "measured", "peer", "before", "after", "after / before"]


def changes(before: Results, after: Results) -> Iterator[tuple[float, list[str]]]:
    """Return how each figure of ours that is in both runs has grown, and the figure's row."""
    earlier = {record.identity: record for record in before.records if record.ours}
    for now in after.records:
        for peer, was, now_is, unit in _pairs(earlier.get(now.identity), now):
            values = figure(was, unit), figure(now_is, unit), number(now_is / was)
            yield now_is / was, [now.label, job_title(*now.job), peer, *values]


def _pairs(then: Record | None, now: Record) -> Iterator[tuple[str, float, float, str]]:
    """Yield what is compared: the ratio to each peer; without a peer, the time."""
    if then is None:
        return
    for peer in now.ratio_to.keys() & then.ratio_to.keys():
        yield peer, then.ratio_to[peer].median, now.ratio_to[peer].median, ""
    if not now.ratio_to and now.p50_s and then.p50_s:
        yield "", then.p50_s, now.p50_s, "s"


def comparison(before: Results, after: Results) -> str:
    """Return a table of all changes, the worst first; above it is the number of regressions."""
    found = sorted(changes(before, after), key=lambda change: -change[0])
    count = sum(factor > WORSE for factor, _ in found)
    rows = [row for _, row in found]
    text = [f"{count} of {len(found)} figures are more than {WORSE - 1:.0%} worse"]
    for title, some in (("Worse", rows[:count]), ("The others", rows[count:])):
        if some:
            text += [f"## {title}", table(HEADER, some)]
    return "\n\n".join(text)


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m bench.compare", None, __doc__, formatter_class=raw)
    parser.add_argument("files", type=Path, nargs="+", help="JSON of pytest-benchmark")
    *earlier, after = parser.parse_args().files
    before = earlier[0] if earlier else RECORDED / after.name
    print(comparison(load([before]), load([after])))


if __name__ == "__main__":
    main()
