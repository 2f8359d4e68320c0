"""Numbers with their units, and Markdown tables that also read well as plain text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

NONE = "-"
NUMBER = re.compile(
    r"\*{0,2}[-\d.,]+\*{0,2}( ?%)?( \([-\d.,]+( to [-\d.,]+)?\))?"
)  # bold, and perhaps more, as in "0.31 (0.29)" and "0.31 (0.29 to 0.42)"


def number(value: float) -> str:
    """Return three significant digits, without an exponent."""
    size = abs(value)
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.1 or size == 0 else f"{value:#.2g}"


def duration(seconds: float | None, unit: str) -> str:
    return NONE if seconds is None else number(seconds / {"µs": 1e-6, "ms": 1e-3, "s": 1.0}[unit])


def figure(value: float, unit: str) -> str:
    """Return a figure with its unit, such as ``0.31`` or ``0.31 s``."""
    return f"{number(value)} {unit}".rstrip()


def spread(low: float, high: float) -> str:
    return f"{number(low)} to {number(high)}"


def span(figure) -> str:
    """Return the span that a ratio or an outcome has over several runs, in parentheses."""
    return f" ({spread(figure.low, figure.high)})" if figure.runs > 1 else ""


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with padded columns: numbers are aligned right, and words left."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in [header, *rows]]
    columns = [list(column) for column in zip(*cells, strict=True)]
    right = [all(NUMBER.fullmatch(cell) for cell in body) for _, *body in columns]
    widths = [max(3, *(len(cell) for cell in column)) for column in columns]
    rule = [
        "-" * (width - at_right) + ":" * at_right
        for width, at_right in zip(widths, right, strict=True)
    ]
    lines = [
        [
            cell.rjust(width) if at_right else cell.ljust(width)
            for cell, width, at_right in zip(row, widths, right, strict=True)
        ]
        for row in cells
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], rule, *lines[1:]])


def filled(text: str, make: Callable[[str, str, str], str | None]) -> str:
    """Return a page in which each part ``<!-- KIND WORDS -->`` ... ``<!-- end -->`` is made anew.

    ``make`` gets the kind, the words and the present text. For a part that another program makes,
    ``make`` returns None, and the part stays.
    """

    def part(found: re.Match[str]) -> str:
        made = make(found[2], found[3] or "", found[4])
        return found[0] if made is None else f"{found[1]}{made}\n<!-- end -->"

    marks = r"(<!-- (\w+)(?: ([^\n]+?))? -->\n)(.*?)<!-- end -->"
    return re.sub(marks, part, text, flags=re.DOTALL)


def with_contents(title: str, text: str) -> str:
    """Return a page: its title, links to its headings of the second and third level, its text."""
    lines = []
    for marks, heading in re.findall(r"^(##|###) (.+)$", text, flags=re.MULTILINE):
        indent = "  " * (len(marks) - 2)
        lines.append(f"{indent}- [{heading}](#{anchor(heading)})")
    return "\n\n".join([title, "\n".join(lines), text]) + "\n"


def anchor(heading: str) -> str:
    """Return the anchor of a heading, such as ``in-njit-loops``."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
