"""Targets, each with the figure of the target in a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median

from bench.report.data import Ratio, Record, Results

PER_SECOND = {"µs": 1e6}


@dataclass(frozen=True)
class Outcome:
    """A target, and the figure of the target; the figure is None if it was not measured.

    If the target has no limit, the figure is shown, but not judged.
    """

    row: str
    limit: float | None
    ranks: int | None = None
    beside: str | None = None
    unit: str = ""
    at_least: bool = False
    value: float | None = None
    low: float | None = None
    high: float | None = None
    runs: int = 1  # low and high are the span of several runs; of one run they are quartiles
    detail: str = ""

    @property
    def holds(self) -> bool | None:
        if self.value is None or self.limit is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def fastest(outcomes: Iterable[Outcome]) -> Outcome | None:
    """Return the outcome beside the fastest peer: the outcome with the largest ratio of ours."""
    return max(outcomes, key=lambda outcome: outcome.value, default=None)


def with_ratio(target: Outcome, ratio: Ratio) -> Outcome:
    return replace(
        target, value=ratio.median, low=ratio.low, high=ratio.high, runs=ratio.runs
    )  # fmt: skip


def with_figures(target: Outcome, by_run: list[float]) -> Outcome:
    """Return the outcome of a target, given the target's figure in each run."""
    if len(by_run) == 1:
        return replace(target, value=by_run[0])
    return with_ratio(target, Ratio(median(by_run), min(by_run), max(by_run), len(by_run)))


@dataclass(frozen=True)
class Target:
    """A target outside the first table, and the words by which the target finds its figures."""

    row: str  # the name by which notes.toml speaks of the target
    limit: float  # the figure must not pass this limit or, with `at_least`, must reach it
    words: tuple[str, ...]  # all of these words are in the operation or the label
    unit: str = ""
    ranks: int | None = None
    beside: str | None = None
    peer: str | None = None  # a part of the peer's name, if the figure is a ratio
    at_least: bool = False
    inverse: bool = False  # whether the figure is the peer's time / our time
    without: tuple[str, ...] = ()  # none of these words is in the label
    setting: str = ""
    fastest: bool = False  # whether only the figure beside the fastest peer counts

    def outcomes(self, results: Results) -> list[Outcome]:
        """Return an outcome for each benchmark that matches; without any, one without a figure."""
        target = Outcome(
            self.row, self.limit, self.ranks, self.beside, self.unit, self.at_least
        )  # fmt: skip
        asked = results.find(
            words=self.words, ranks=self.ranks, beside=self.beside, setting=self.setting
        )
        asked = [r for r in asked if r.ours and not any(w in r.label for w in self.without)]
        made = [
            self._outcome(replace(target, ranks=r.ranks, beside=r.beside, detail=r.label), r)
            for r in asked
        ]
        made = [each for each in made if each.value is not None] or [target]
        return [fastest(made)] if self.fastest and len(made) > 1 else made

    def _outcome(self, target: Outcome, record: Record) -> Outcome:
        if self.peer is None:
            factor = PER_SECOND.get(self.unit, 1.0)
            return with_figures(target, [each * factor for each in record.by_run.values()])
        ratio = next((r for name, r in record.ratio_to.items() if self.peer in name), None)
        if ratio and self.inverse:
            ratio = Ratio(1 / ratio.median, 1 / ratio.high, 1 / ratio.low, ratio.runs)
        return with_ratio(target, ratio) if ratio else target


@dataclass(frozen=True)
class Growth:
    """A target on the ratio of two figures of ours.

    Each figure is named by label and ranks; ``per_byte`` divides it by its bytes.
    """

    row: str
    limit: float
    first: tuple[str, int]
    last: tuple[str, int]
    per_byte: bool = False

    def outcomes(self, results: Results) -> list[Outcome]:
        """Return the outcome; it has no figure if one of the two figures is missing."""
        ends = []
        for label, ranks in (self.first, self.last):
            found = results.find(label=label, ranks=ranks, operation="growth", setting="")
            ends += [r for r in found if r.ours][-1:]
        common = set.intersection(*(set(each.by_run) for each in ends)) if len(ends) == 2 else ()
        if not common:
            return [Outcome(self.row, self.limit)]
        first, last = ends
        bytes_grown = last.bytes / first.bytes if self.per_byte else 1
        grown = [last.by_run[run] / first.by_run[run] / bytes_grown for run in common]
        where = (last.ranks if first.job == last.job else None), last.beside
        return [with_figures(Outcome(self.row, self.limit, *where, detail=last.label), grown)]


@dataclass(frozen=True)
class Either:
    """Alternative targets: one has to hold. The first that holds is shown, or else the first."""

    targets: tuple[Target, ...]

    def outcomes(self, results: Results) -> list[Outcome]:
        made = [target.outcomes(results) for target in self.targets]
        return next((each for each in made if all(one.holds for one in each)), made[0])
