"""The table that is printed after the checks, and the failures below the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cobre_comm.check.document import points_of
from cobre_comm.check.large_calls import as_lines
from cobre_comm.check.result import COLUMNS, Missing, Point, Result
from cobre_comm.check.runner import NOT_TRIED

HEAD, TAIL = 3, 12  # shown lines of a failure: mostly its end, which says most
GAP = "  "
NUMBERS = {"ranks", "seconds"}  # the columns of numbers


def of_machine(machine: Mapping[str, str]) -> str:
    """Return the facts about the machine as lines."""
    width = max(map(len, machine)) + len(GAP)
    return "\n".join(f"{what:{width}}{words}" for what, words in machine.items())


def of_results(results: Sequence[Result], missing: Sequence[Missing]) -> str:
    """Return the table, and below it the failures and the backends that could not run."""
    titles = ["backend", "ranks", *COLUMNS.values(), "seconds"]
    rows = [_row(point, [r for r in results if r.point == point]) for point in points_of(results)]
    rows += [[each.backend, *["-"] * (len(titles) - 1)] for each in missing]
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    lines = [_line(titles, titles, widths), GAP.join("-" * width for width in widths)]
    lines += [_line(titles, row, widths) for row in rows]
    lines += [f"{each.backend} cannot run here: {each.reason}" for each in missing]
    for result in results:
        if result.stats:
            lines += [f"{result.point}: {line}" for line in as_lines(result.stats)]
    for result in results:
        if not result.passed and result.detail != NOT_TRIED:
            lines += _failure(result)
    return "\n".join(lines)


def _line(titles: Sequence[str], cells: Sequence[str], widths: Sequence[int]) -> str:
    columns = zip(titles, cells, widths, strict=True)
    return GAP.join(
        cell.rjust(width) if title in NUMBERS else cell.ljust(width)
        for title, cell, width in columns
    ).rstrip()


def _row(point: Point, results: Sequence[Result]) -> list[str]:
    cells = [_cell([r for r in results if r.column == column]) for column in COLUMNS]
    seconds = sum(result.seconds for result in results)
    return [point.backend, str(point.ranks), *cells, f"{seconds:.1f}"]


def _cell(results: Sequence[Result]) -> str:
    failed = sum(not result.passed for result in results)
    if not results:
        return "-"
    return f"{failed} of {len(results)} failed" if failed else f"{len(results)} ok"


def _failure(result: Result) -> list[str]:
    lines = result.detail.splitlines()
    if len(lines) > HEAD + TAIL:
        lines = [*lines[:HEAD], "...", *lines[-TAIL:]]
    where = f"{result.point}, {COLUMNS[result.column]}: {result.name}"
    return ["", where, *(f"  {line}" for line in lines)]
