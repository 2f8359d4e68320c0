"""The tables of the report, as Markdown: targets, misses, and every figure."""

from __future__ import annotations

from collections.abc import Iterable

from bench.peers import PEERS
from bench.plan import FRESH, OURS, SAME
from bench.report.data import Results, job_title
from bench.report.notes import Miss
from bench.report.outcomes import Outcome
from bench.report.targets import COLUMNS, ROWS, ratios_of
from bench.report.text import (
    NONE,
    duration,
    figure,
    number,
    span,
    spread,
    table,
)

NO_NOTE = (
    "**NO NOTE: this miss is not explained. "
    "What was tried and what limits it belongs in bench/report/notes.toml.**"
)


def target_table(grid: dict[str, list[Outcome]], marks: dict[Outcome, int]) -> str:
    """Return a table of rows and columns; each cell has the figure and its target."""
    columns = [job_title(ranks, None, setting or SAME) for ranks, setting in COLUMNS]
    rows = [
        [row, *(f"{cell(each, marks)} {PEERS.get(each.beside, '')}".rstrip() for each in outcomes)]
        for row, outcomes in grid.items()
    ]
    return table([f"{OURS} / the fastest", *columns], rows)


def peer_table(results: Results, ranks: int) -> str:
    """Return a table of rows and peers: the ratio with fresh data, and that with the same data."""
    rows = []
    for label in ROWS:
        fresh, same = (ratios_of(results, label, ranks, setting) for setting in (FRESH, ""))
        cells = []
        for peer in PEERS:
            known = [number(found[peer].median) for found in (fresh, same) if peer in found]
            cells.append(f"{known[0]} ({known[1]})" if len(known) > 1 else "".join(known) or NONE)
        rows.append([label, *cells])
    return table([job_title(ranks, None), *PEERS.values()], rows)


def cell(outcome: Outcome, marks: dict[Outcome, int]) -> str:
    """Return a cell such as ``0.31 (≤ 0.6)``; a miss is bold, with the number of its note."""
    if outcome.limit is None:
        shown = NONE if outcome.value is None else figure(outcome.value, outcome.unit)
        return shown + span(outcome)
    limit = target_text(outcome)
    if outcome.value is None:
        return f"not measured ({limit})"
    text = figure(outcome.value, outcome.unit)
    if outcome.runs > 1:
        limit = f"{spread(outcome.low, outcome.high)}; {limit}"
    return f"{text} ({limit})" if outcome.holds else f"**{text}** ({limit}) [{marks[outcome]}]"


def target_text(outcome: Outcome) -> str:
    return f"{'≥' if outcome.at_least else '≤'} {outcome.limit:g} {outcome.unit}".rstrip()


def counts(grid: dict[str, list[Outcome]]) -> str:
    """Say how many rows and cells hold their targets, and how many were not measured."""
    judged = [[cell for cell in cells if cell.limit is not None] for cells in grid.values()]
    cells = [outcome for outcomes in judged for outcome in outcomes]
    held = [[outcome.holds for outcome in outcomes] for outcomes in judged]
    hold = sum(all(row) for row in held)
    miss = sum(False in row for row in held)
    measured = [outcome.holds for outcome in cells if outcome.holds is not None]
    open_rows = len(grid) - hold - miss
    incomplete = f", {open_rows} not measured in full and without a miss" if open_rows else ""
    return (
        f"**{hold} of {len(grid)} rows hold in all columns**,"
        f" {miss} miss in one at least{incomplete}."
        f" Of {len(cells)} cells {sum(measured)} hold, {len(measured) - sum(measured)} miss,"
        f" {len(cells) - len(measured)} are not measured."
    )


def other_table(outcomes: Iterable[Outcome], marks: dict[Outcome, int]) -> str:
    """Return a line for each outcome of the targets outside the first table."""
    rows = []
    for each in outcomes:
        where = job_title(each.ranks, each.beside) if each.ranks else ""
        if each.detail and each.detail not in each.row:
            where = f"{each.detail}; {where}" if where else each.detail
        rows.append([each.row, where or NONE, cell(each, marks)])
    return table(["", "measured", "figure (target)"], rows)


def miss_list(misses: list[Miss]) -> str:
    """Return a numbered entry for each miss: the figures, the attempts, the limit."""
    if not misses:
        return "None of the targets that were measured is missed."
    entries = []
    for miss in misses:
        first = miss.outcomes[0]
        lines = [f"{miss.number}. **{first.row}**", *map(_missed, miss.outcomes)]
        texts = [("Tried", miss.tried), ("Limit", miss.limit)]
        lines += [f"*{name}:* {' '.join(text.split())}" for name, text in texts if text]
        if not (miss.tried and miss.limit):
            lines.append(NO_NOTE)
        entries.append("\n    - ".join(lines))
    return "\n".join(entries)


def _missed(outcome: Outcome) -> str:
    where = job_title(outcome.ranks, outcome.beside) if outcome.ranks else outcome.detail
    words = "quartiles" if outcome.runs == 1 else f"{outcome.runs} runs:"
    between = f", {words} {spread(outcome.low, outcome.high)}" if outcome.low is not None else ""
    figures = f"{figure(outcome.value or 0, outcome.unit)} ({target_text(outcome)}){between}"
    return f"{where}: {figures}" if where else figures


def ratio_table(results: Results) -> str:
    """Return a line for each ratio that a run has measured, to be shown at its end."""
    rows = []
    for ours in [r for r in results.records if r.ratio_to]:
        for side, ratio in ours.ratio_to.items():
            theirs = results.find(label=ours.label, side=side, operation=ours.operation)
            times = [r.p50_s for r in theirs if r.job == ours.job] or [None]
            name = ours.label if ours.ours else f"{ours.label}, {ours.side}"
            rows.append([
                name, job_title(ours.ranks, None, ours.setting), side,
                duration(ours.p50_s, "µs"), duration(times[-1], "µs"),
                number(ratio.median), spread(ratio.low, ratio.high),
            ])  # fmt: skip
    return table(["", "measured", "peer", "ours, µs", "peer, µs", "ratio", "quartiles"], rows)
