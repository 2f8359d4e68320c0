"""Turns times and numbers of bytes into text, and rows into aligned lines."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import fsum

UNITS = ("bytes", "KB", "MB", "GB", "TB")


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows as lines, the first column aligned left and the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def seconds_text(seconds: float) -> str:
    """Return a time as text, in s, ms or us."""
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1.0:
            return f"{seconds * scale:.3g} {unit}" if seconds * scale < 1000 else f"{seconds:.0f} s"
    return f"{seconds * 1e6:.3g} us"


def mean(values: Collection[float]) -> float:
    """Return the mean of some values without ``statistics``, which takes 4 ms to import."""
    return fsum(values) / len(values)


def spread_text(seconds: Sequence[float]) -> str:
    """Return least, mean and most of some times as text, all in the unit of the largest time."""
    most = max(seconds)
    unit, scale = next(
        ((unit, scale) for unit, scale in (("s", 1.0), ("ms", 1e3)) if most * scale >= 1.0),
        ("us", 1e6),
    )
    digits = 2 if 0 < most * scale < 10 else 1 if 10 <= most * scale < 100 else 0
    three = (min(seconds), mean(seconds), most)
    return f"{' '.join(f'{each * scale:.{digits}f}' for each in three)} {unit}"


def power_text(count: int) -> str:
    """Return a power of two of bytes, from 1 KiB on, as text."""
    return f"{count >> 20} MiB" if count >> 20 else f"{count >> 10} KiB"


def bytes_text(count: float) -> str:
    """Return a number of bytes as text."""
    for unit in UNITS:
        if count < 1000 or unit == UNITS[-1]:
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == UNITS[0] else f"{count:.3g} {unit}"
