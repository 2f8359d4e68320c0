"""Compare two runs: figures that have become slower beside their peers come first.

    python -m bench.compare before.json after.json
    python -m bench.compare after.json     # with what is recorded under that name

A file is of `bench/results` or `bench/recorded`, or any JSON of pytest-benchmark.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.report.data import RECORDED, Record, Results, job_title, load
from bench.report.text import figure, number, table

WORSE = 1.1  # a ratio that has grown by more than 10 % is a regression


@dataclass(frozen=True)
class Change:
    """A figure of both runs: a ratio to a peer, or a time that has none."""

    label: str
    where: str
    peer: str
    unit: str
    before: float
    after: float

    @property
    def factor(self) -> float:
        return self.after / self.before


def changes(before: Results, after: Results) -> Iterator[Change]:
    """Return a change for each figure of ours that both runs have measured."""
    earlier = {record.identity: record for record in before.records if record.ours}
    for now in after.records:
        then = earlier.get(now.identity)
        if then is not None:
            yield from _changes_of(then, now)


def _changes_of(then: Record, now: Record) -> Iterator[Change]:
    where = job_title(*now.job)
    for peer in now.ratio_to.keys() & then.ratio_to.keys():
        ratios = then.ratio_to[peer].median, now.ratio_to[peer].median
        yield Change(now.label, where, peer, "", *ratios)
    if not now.ratio_to and now.p50_s and then.p50_s:
        yield Change(now.label, where, "", "s", then.p50_s, now.p50_s)


def comparison(before: Results, after: Results) -> str:
    """Return a table of all changes, the worst first, under the number of regressions."""
    found = sorted(changes(before, after), key=lambda change: -change.factor)
    worse = [change for change in found if change.factor > WORSE]
    rest = found[len(worse) :]
    text = [f"{len(worse)} of {len(found)} figures are more than {WORSE - 1:.0%} worse"]
    for title, some in (("Worse", worse), ("The others", rest)):
        if some:
            text += [f"## {title}", table(HEADER, [_cells(change) for change in some])]
    return "\n\n".join(text)


HEADER = ["", "measured", "peer", "before", "after", "after / before"]


def _cells(change: Change) -> list[str]:
    values = (figure(value, change.unit) for value in (change.before, change.after))
    return [change.label, change.where, change.peer, *values, number(change.factor)]


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m bench.compare", None, __doc__, formatter_class=raw)
    parser.add_argument("files", type=Path, nargs="+", help="JSON of pytest-benchmark")
    *earlier, after = parser.parse_args().files
    before = earlier[0] if earlier else RECORDED / after.name
    print(comparison(load([before]), load([after])))


if __name__ == "__main__":
    main()
