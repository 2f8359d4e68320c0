"""The result of ``cobre-comm check``: a JSON document for programs, and a last line for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cobre_comm.check.large_calls import as_data
from cobre_comm.check.result import COLUMNS, Missing, Point, Result


def document(
    machine: Mapping[str, str],
    missing: Sequence[Missing],
    results: Sequence[Result],
    *,
    quick: bool,
    seconds: float,
) -> dict[str, Any]:
    """Return the machine, the results and the missing backends as values that JSON can hold."""
    failed = [result for result in results if not result.passed]
    return {
        "ok": is_right(missing, results),
        "quick": quick,
        "machine": dict(machine),
        "missing": [vars(each) for each in missing],
        "large_calls": [_large_calls(result) for result in results if result.stats],
        "checks": [_check(result) for result in results],
        "passed": len(results) - len(failed),
        "failed": len(failed),
        "seconds": round(seconds, 1),
    }


def _check(result: Result) -> dict[str, Any]:
    return {
        "backend": result.point.backend,
        "ranks": result.point.ranks,
        "group": COLUMNS[result.column],
        "name": result.name,
        "outcome": "passed" if result.passed else "failed",
        "seconds": round(result.seconds, 3),
        "detail": result.detail,
    }


def _large_calls(result: Result) -> dict[str, Any]:
    assert result.stats is not None
    return {**vars(result.point), **as_data(result.stats)}


def is_right(missing: Sequence[Missing], results: Sequence[Result]) -> bool:
    """Whether checks ran, all of them passed, and every backend that was asked for can run."""
    asked = any(each.asked for each in missing)
    return bool(results) and not asked and all(result.passed for result in results)


def last_line(missing: Sequence[Missing], results: Sequence[Result], seconds: float) -> str:
    """Return the last line: how many checks passed, and which backends are missing."""
    failed = sum(not result.passed for result in results)
    asked = [each.backend for each in missing if each.asked]
    if failed:
        return f"{failed} of {len(results)} checks failed ({seconds:.0f} s)."
    passed = f"All {len(results)} checks passed: {_extent(results)}" if results else "Nothing ran"
    if asked:
        return f"{passed}; {', '.join(asked)} cannot run here ({seconds:.0f} s)."
    return f"{passed} ({seconds:.0f} s)."


def _extent(results: Sequence[Result]) -> str:
    points = points_of(results)
    backends = ", ".join(dict.fromkeys(point.backend for point in points))
    sizes = sorted({point.ranks for point in points})
    return f"the same bits on {backends} with {_numbers(sizes)} rank{'s' * (sizes != [1])}"


def _numbers(sizes: Sequence[int]) -> str:
    words = [str(size) for size in sizes]
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def points_of(results: Sequence[Result]) -> list[Point]:
    """Return the points at which checks ran, in order."""
    return list(dict.fromkeys(result.point for result in results))
