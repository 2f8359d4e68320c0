"""The tables of the report, as Markdown: targets, misses, and every figure."""

from __future__ import annotations

from collections.abc import Iterable

from bench.peers import PEERS
from bench.plan import FRESH, OURS, SAME
from bench.report.data import Record, Results, job_order, job_title
from bench.report.notes import Miss
from bench.report.outcomes import Outcome
from bench.report.targets import COLUMNS, ROWS, ratios_of
from bench.report.text import NONE, commands, duration, figure, gigabytes, number, table

NO_NOTE = (
    "**NO NOTE: this miss is not explained. "
    "What was tried and what limits it belongs in bench/report/notes.toml.**"
)


def target_table(grid: dict[str, list[Outcome]], marks: dict[Outcome, int]) -> str:
    """Return rows x columns, each cell the figure and its target."""
    columns = [job_title(ranks, None, setting or SAME) for ranks, setting in COLUMNS]
    rows = [
        [row, *(f"{cell(each, marks)} {PEERS.get(each.beside, '')}".rstrip() for each in outcomes)]
        for row, outcomes in grid.items()
    ]
    return table([f"{OURS} / the fastest", *columns], rows)


def peer_table(results: Results, ranks: int) -> str:
    """Return rows x peers: the ratio with fresh data, and the one with the same data."""
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
    """Return a cell such as ``0.31 (≤ 0.6)``; a miss is bold and has the number of its note."""
    if outcome.limit is None:
        return NONE if outcome.value is None else figure(outcome.value, outcome.unit)
    limit = target_text(outcome)
    if outcome.value is None:
        return f"not measured ({limit})"
    text = figure(outcome.value, outcome.unit)
    return f"{text} ({limit})" if outcome.holds else f"**{text}** ({limit}) [{marks[outcome]}]"


def target_text(outcome: Outcome) -> str:
    return f"{'≥' if outcome.at_least else '≤'} {outcome.limit:g} {outcome.unit}".rstrip()


def counts(grid: dict[str, list[Outcome]]) -> str:
    """Say how many rows and cells hold, and how many were not measured."""
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
    """Return a numbered entry for each miss: its figures, the attempts, the limit."""
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
    between = f", quartiles {spread(outcome.low, outcome.high)}" if outcome.low is not None else ""
    figures = f"{figure(outcome.value or 0, outcome.unit)} ({target_text(outcome)}){between}"
    return f"{where}: {figures}" if where else figures


def spread(low: float | None, high: float | None) -> str:
    return NONE if low is None or high is None else f"{number(low)} to {number(high)}"


def all_figures(results: Results) -> str:
    """Return a table of times for each job, with the commands, and one of the other figures."""
    jobs = dict.fromkeys(record.job for record in results.records if record.p50_s is not None)
    parts = []
    for job in sorted(jobs, key=job_order):
        here = [r for r in results.records if r.job == job and r.p50_s is not None]
        title = job_title(*job)
        parts += [f"### {title[0].upper()}{title[1:]}", job_table(here)]
        parts.append(commands([(r.label, r.command) for r in here if r.ours or not _ours(here, r)]))
    valued = [record for record in results.records if record.value is not None]
    if valued:
        parts += ["### Figures that are no time", value_table(valued)]
        parts.append(commands([(f"{r.label}, {r.side}", r.command) for r in valued]))
    return "\n\n".join(part for part in parts if part)


def job_table(records: list[Record]) -> str:
    """Return a line for each pair of ours and a peer that were measured in one job."""
    unit = "µs" if min(r.p50_s or 0 for r in records) < 1e-3 else "ms"
    rows = []
    for label, operation in dict.fromkeys((r.label, r.operation) for r in records):
        here = [r for r in records if (r.label, r.operation) == (label, operation)]
        peers = [r for r in here if not r.ours]
        name = label if "njit" not in operation or "njit" in label else f"{label} in @njit"
        for ours in [r for r in here if r.ours] or [None]:
            rows += [[name, *_pair(ours, peer, unit)] for peer in peers or [None]]
    header = [
        "", "ours", "peer", f"ours p50, {unit}", f"peer p50, {unit}", "ratio", "quartiles",
        f"ours p99, {unit}", f"peer p99, {unit}", "ours GB/s", "peer GB/s",
    ]  # fmt: skip
    return table(header, rows)


def _pair(ours: Record | None, peer: Record | None, unit: str) -> list[str]:
    ratio = ours.ratio_to.get(peer.side) if ours and peer else None
    sides = [ours, peer]
    return [
        (ours.backend or "yes") if ours else NONE,
        peer.side if peer else NONE,
        *(duration(side.p50_s if side else None, unit) for side in sides),
        number(ratio.median) if ratio else NONE,
        spread(ratio.low, ratio.high) if ratio else NONE,
        *(duration(side.p99_s if side else None, unit) for side in sides),
        *(gigabytes(side.bytes_per_s if side else None) for side in sides),
    ]


def ratio_table(results: Results) -> str:
    """Return a line for each ratio that was measured, for the end of a run."""
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


def value_table(records: list[Record]) -> str:
    rows = [[r.label, r.side, job_title(*r.job), figure(r.value or 0, r.unit)] for r in records]
    return table(["", "side", "measured", "figure"], rows)


def _ours(records: list[Record], record: Record) -> bool:
    return any(each.ours and each.label == record.label for each in records)
