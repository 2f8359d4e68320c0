"""Numbers with their units, and Markdown tables that also read well as plain text."""

from __future__ import annotations

import re
from collections.abc import Sequence

NONE = "-"


def number(value: float) -> str:
    """Return three significant digits, without an exponent."""
    size = abs(value)
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.1 or size == 0 else f"{value:#.2g}"


def duration(seconds: float | None, unit: str) -> str:
    return NONE if seconds is None else number(seconds / {"µs": 1e-6, "ms": 1e-3}[unit])


def gigabytes(bytes_per_s: float | None) -> str:
    return NONE if not bytes_per_s else number(bytes_per_s / 1e9)


def figure(value: float, unit: str) -> str:
    """Return a figure with its unit, such as ``0.31`` or ``0.31 s``."""
    return f"{number(value)} {unit}".rstrip()


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a table whose columns are padded, all but the first `left` aligned to the right."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in [header, *rows]]
    widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(header))]
    rule = ["-" * width if i < left else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    lines = [
        [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in cells
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], rule, *lines[1:]])


def commands(pairs: Sequence[tuple[str, str]]) -> str:
    """Return a folded block of shell commands, each once, with the rows that it repeats."""
    by_command: dict[str, list[str]] = {}
    for name, command in pairs:
        names = by_command.setdefault(command, [])
        if name not in names:
            names.append(name)
    by_command.pop("", None)
    lines = [f"{command}  # {', '.join(names)}" for command, names in by_command.items()]
    block = "\n".join(["```sh", *lines, "```"])
    return f"<details><summary>Commands</summary>\n\n{block}\n\n</details>" if lines else ""


def with_contents(title: str, text: str) -> str:
    """Return a page: its title, links to all headings of the second and third level, its text."""
    lines = []
    for marks, heading in re.findall(r"^(##|###) (.+)$", text, flags=re.MULTILINE):
        indent = "  " * (len(marks) - 2)
        lines.append(f"{indent}- [{heading}](#{anchor(heading)})")
    return "\n\n".join([title, "\n".join(lines), text]) + "\n"


def anchor(heading: str) -> str:
    """Return the anchor of a heading, such as ``in-njit-loops``."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
