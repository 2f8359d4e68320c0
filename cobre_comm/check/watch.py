"""What is seen while checks run, where no terminal shows more: a line for each set of ranks."""

from __future__ import annotations

import sys

from cobre_comm.check.result import Check, Point, Result


class Lines:
    """Writes a line to stderr when all checks of a backend and a number of ranks have ended.

    Parameters
    ----------
    counts : dict
        How many checks each has.
    """

    def __init__(self, counts: dict[Point, int]) -> None:
        self._counts = dict(counts)
        self._seconds = dict.fromkeys(counts, 0.0)
        self._failed = dict.fromkeys(counts, 0)
        self._left = dict(counts)

    def begin(self, point: Point, check: Check) -> None:
        """Write nothing when a check begins."""

    def end(self, result: Result) -> None:
        """Count the result of a check; write the line after the last one."""
        point = result.point
        self._left[point] -= 1
        self._seconds[point] += result.seconds
        self._failed[point] += not result.passed
        if not self._left[point]:
            failed, count = self._failed[point], self._counts[point]
            said = f"{failed} of {count} checks failed" if failed else f"{count} checks passed"
            print(f"{point}: {said}, {self._seconds[point]:.1f} s", file=sys.stderr, flush=True)
