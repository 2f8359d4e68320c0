"""Targets, each with its figure in a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from bench.report.data import Ratio, Record, Results

PER_SECOND = {"µs": 1e6}


@dataclass(frozen=True)
class Outcome:
    """A target and the figure beside it; the figure is None if it was not measured.

    Without a limit the figure is shown and not judged.
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
    detail: str = ""

    @property
    def holds(self) -> bool | None:
        if self.value is None or self.limit is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def fastest(outcomes: Iterable[Outcome]) -> Outcome | None:
    """Return the outcome beside the peer that is the fastest for us: where our ratio is largest."""
    return max(outcomes, key=lambda outcome: outcome.value, default=None)


def with_ratio(target: Outcome, ratio: Ratio) -> Outcome:
    return replace(target, value=ratio.median, low=ratio.low, high=ratio.high)


@dataclass(frozen=True)
class Target:
    """A target outside the first table.

    Attributes
    ----------
    row : str
        Its name, by which notes.toml speaks of it.
    limit : float
        The limit that the figure must not pass, or with `at_least` must reach.
    words : tuple of str
        All of them stand in the operation or label of the benchmark.
    peer : str
        Part of the peer's name, if the figure is a ratio.
    inverse : bool
        Whether the figure is the peer's time / ours.
    without : tuple of str
        None of them stands in the label.
    setting : str
        That of the benchmark.
    fastest : bool
        Whether only the figure beside the fastest peer counts.
    """

    row: str
    limit: float
    words: tuple[str, ...]
    unit: str = ""
    ranks: int | None = None
    beside: str | None = None
    peer: str | None = None
    at_least: bool = False
    inverse: bool = False
    without: tuple[str, ...] = ()
    setting: str = ""
    fastest: bool = False

    def outcomes(self, results: Results) -> list[Outcome]:
        """Return an outcome for each benchmark that matches, or one without a figure."""
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
            value = record.value
            if value is None:
                value = record.p50_s * PER_SECOND.get(self.unit, 1.0)
            return replace(target, value=value)
        ratio = next((r for name, r in record.ratio_to.items() if self.peer in name), None)
        if ratio and self.inverse:
            ratio = Ratio(1 / ratio.median, 1 / ratio.high, 1 / ratio.low)
        return with_ratio(target, ratio) if ratio else target


@dataclass(frozen=True)
class Growth:
    """A target on the ratio of two figures of ours.

    Both are named by label and ranks; ``per_byte`` divides them by their bytes.
    """

    row: str
    limit: float
    first: tuple[str, int]
    last: tuple[str, int]
    per_byte: bool = False

    def outcomes(self, results: Results) -> list[Outcome]:
        """Return the outcome, without a figure if one of the two is missing."""
        ends = []
        for label, ranks in (self.first, self.last):
            found = results.find(label=label, ranks=ranks, operation="growth", setting="")
            ends += [r for r in found if r.ours][-1:]
        if len(ends) < 2:
            return [Outcome(self.row, self.limit)]
        first, last = (r.p50_s / (r.bytes if self.per_byte else 1) for r in ends)
        same = ends[0].job == ends[1].job
        where = (ends[1].ranks, ends[1].beside) if same else (None, ends[1].beside)
        return [
            Outcome(self.row, self.limit, *where, value=last / first, detail=ends[1].label)
        ]  # fmt: skip


@dataclass(frozen=True)
class Either:
    """Alternative targets: one has to hold. The report shows the first that holds, or the first."""

    targets: tuple[Target, ...]

    def outcomes(self, results: Results) -> list[Outcome]:
        made = [target.outcomes(results) for target in self.targets]
        return next((each for each in made if all(one.holds for one in each)), made[0])
