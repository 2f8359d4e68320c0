"""The SDDP example on every backend and number of ranks, compared with a run on one rank."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from cobre_comm.backends import SPECS
from cobre_comm.check import sddp
from cobre_comm.check.result import Check, Point
from cobre_comm.testing.backend_name import BackendName
from cobre_comm.testing.ranks.pool import RankPool

ALONE = Point("local", 1)
CASES = {"gen_h4_t5_k3": (), "gen_h8_t12_k10": ("--iterations", "5")}
"""By case: options by which a training takes a second or two. A quick check has the first case."""
COMPILES = ("--iterations", "0")
"""Options with which a training only compiles. It runs on one rank, so it needs no timeout."""
TIMES = 2  # how often the example is trained at each point, unless the check is quick


class Witness:
    """Trains cases on one rank alone, and compares other trainings with these."""

    def __init__(self, *, quick: bool) -> None:
        self._cases = list(CASES)[:1] if quick else list(CASES)
        self._times = 1 if quick else TIMES
        self._alone: dict[str, dict[str, Any]] = {}
        self._is_compiled = False  # whether the code for communicators of several ranks is compiled

    def checks(self, point: Point) -> Iterator[Check]:
        """Yield the trainings of a backend and a number of ranks."""
        if BackendName.parse(point.backend).kind not in {spec.name for spec in SPECS}:
            return  # `cobre-comm run` cannot start a backend of another distribution
        for case in self._cases:
            for time in range(1, self._times + 1):
                name = f"{case}, {'first' if time == 1 else 'again'}"
                yield Check("sddp", name, partial(self._train, point, case))

    def _train(self, point: Point, case: str, pool: RankPool) -> None:
        pool.close()  # frees the memory of these ranks, which are not needed any more
        if case not in self._alone:
            self._alone[case] = sddp.train(ALONE.backend, ALONE.ranks, case, CASES[case], None)
            if point == ALONE:
                return
        if not self._is_compiled and point.backend != ALONE.backend:
            sddp.train(point.backend, 1, case, COMPILES, None)
            self._is_compiled = True
        result = sddp.train(point.backend, point.ranks, case, CASES[case])
        if different := sddp.differences(self._alone[case], result):
            raise AssertionError(
                f"{case}: {', '.join(different)}: not the same bits as with {ALONE}: "
                f"lower bound {_last(result)} instead of {_last(self._alone[case])}"
            )


def _last(result: dict[str, Any]) -> str:
    trace = result["lower_bound"]
    return f"{float.fromhex(trace[-1])!r} after {len(trace)} iterations" if trace else "none"
