"""What is shown: progress while checks run, and one table at the end. Needs rich."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed
from rich.table import Table
from rich.text import Text

from cobre_comm.check.document import points_of
from cobre_comm.check.result import COLUMNS, Check, Missing, Point, Result
from cobre_comm.check.runner import NOT_TRIED

WIDE = 120  # columns of a file
NAMED = 3  # failed checks that a cell names
HEAD, TAIL = 3, 12  # lines shown of what was wrong; the end of a traceback is what tells


class Bar:
    """Shows on a terminal which check runs."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=total)
        self._failed = 0

    def begin(self, point: Point, check: Check) -> None:
        """Show that a check begins."""
        failed = f"{self._failed} failed · " * bool(self._failed)
        words = f"{failed}{point} · {COLUMNS[check.column]}: {check.name}"
        self._progress.update(self._task, description=words)

    def end(self, result: Result) -> None:
        """Count the result of a check."""
        self._failed += not result.passed
        self._progress.advance(self._task)


@contextlib.contextmanager
def bar(total: int) -> Iterator[Bar]:
    """Show a bar on stderr, and remove it."""
    words = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), BarColumn(16), MofNCompleteColumn(), Elapsed(), words)
    console = Console(stderr=True, highlight=False)
    with Progress(*columns, console=console, transient=True) as progress:
        yield Bar(progress, total)


def make_console() -> Console:
    """Return stdout; a file is as wide as the table needs."""
    console = Console(highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console.width = WIDE
    return console


def show_machine(console: Console, machine: Mapping[str, str]) -> None:
    """Print what runs, and on what."""
    width = max(map(len, machine)) + 2
    for what, words in machine.items():
        console.print(f"{what:{width}}{words}", soft_wrap=True)


def show(console: Console, results: Sequence[Result], missing: Sequence[Missing]) -> None:
    """Print the table; below it, what was wrong and what could not run."""
    table = Table(show_lines=False)
    table.add_column("backend", no_wrap=True)
    table.add_column("ranks", justify="right")
    for title in COLUMNS.values():
        table.add_column(title)
    table.add_column("seconds", justify="right")
    for point in points_of(results):
        table.add_row(*_row(point, [result for result in results if result.point == point]))
    for each in missing:
        style = "red" if each.asked else "dim"
        table.add_row(each.backend, "-", Text("cannot run here: see below", style=style))
    console.print(table)
    for each in missing:
        console.print(f"{each.backend} cannot run here: {each.reason}", soft_wrap=True)
    for result in results:
        if not result.passed and result.detail != NOT_TRIED:
            _show_failure(console, result)


def _row(point: Point, results: Sequence[Result]) -> list[str | Text]:
    cells = [_cell([r for r in results if r.column == column]) for column in COLUMNS]
    seconds = sum(result.seconds for result in results)
    return [point.backend, str(point.ranks), *cells, f"{seconds:.1f}"]


def _cell(results: Sequence[Result]) -> Text:
    failed = [result.name for result in results if not result.passed]
    if not results:
        return Text("-", style="dim")
    if not failed:
        return Text(f"{len(results)} ok", style="green")
    names = "; ".join(failed[:NAMED]) + "; ..." * (len(failed) > NAMED)
    return Text(f"{len(failed)} of {len(results)} failed: {names}", style="bold red")


def _show_failure(console: Console, result: Result) -> None:
    where = f"{result.point}, {COLUMNS[result.column]}: {result.name}"
    console.print()
    console.print(where, style="bold red", soft_wrap=True)
    lines = result.detail.splitlines()
    if len(lines) > HEAD + TAIL:
        lines = [*lines[:HEAD], "...", *lines[-TAIL:]]
    for line in lines:
        console.print(f"  {line}", soft_wrap=True)
