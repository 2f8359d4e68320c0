"""Splits a communicator by colors: finds the parts, and makes them in step with the parent.

The ranks of the parent tell each other their colors and keys; the ranks of one color are a *part*.
A backend makes the communicators of all parts at the same time. Meanwhile the ranks of the parent
stay in step: they agree again and again, so each of them soon learns if another rank is lost, is
interrupted, or cannot continue. No rank leaves the split before all parts are made.

========== ============================================ ========================================
a rank is  while                                        and tells
========== ============================================ ========================================
PENDING    its part is being made                       PENDING, every ``LOOK_S``
DONE       its part is made, or it takes no part        DONE, until no rank is PENDING
FAILED     its part could not be made; no part is kept  FAILED, once; then all agree on the reason
========== ============================================ ========================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from cobre_comm.arguments.numbers import as_integer
from cobre_comm.backends.agreement import Group, first_problem, reason_of
from cobre_comm.contract.closing import Closing
from cobre_comm.errors import AllocationFailed, InitializationFailed

LOOK_S = 0.02  # the time between two looks for lost ranks; most parts are made sooner
FAILED, PENDING, DONE = 0, 1, 2
UNHEARD = -1
LARGEST = 2**63 - 1

T = TypeVar("T", bound=Closing)


class Part(NamedTuple):
    """The ranks of one color."""

    ranks: tuple[int, ...]  # the ranks' numbers in the parent, in the order of the part
    rank: int  # this rank's number in the part
    has_color: bool  # False for the ranks of color None, which get no communicator

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.ranks)

    @property
    def leader(self) -> int:
        """The first rank of the part, by its number in the parent."""
        return self.ranks[0]


def check_color(color: object, key: object) -> tuple[int | None, int]:
    """Return a color and a key as numbers of Python.

    ``TypeError`` is raised if one of them is no integer, ``ValueError`` if it does not fit 64 bits.
    """
    if color is None:
        return None, _number("key", key, "")
    hint = ", or None to get no communicator; of a flag pass int(flag)"
    return _number("color", color, hint), _number("key", key, "")


def _number(name: str, value: object, hint: str) -> int:
    try:
        number = as_integer("split", name, value)
    except TypeError as error:
        raise TypeError(f"{error}; pass an int{hint}") from None
    if not -LARGEST - 1 <= number <= LARGEST:
        raise ValueError(f"split: {name} does not fit a 64-bit signed integer: {number}")
    return number


def find_part(group: Group, color: int | None, key: int) -> Part:
    """Return the ranks that give the same color, ordered by (key, rank); collective."""
    own = np.array([color is not None, color or 0, key], dtype=np.int64)
    rows = group.gather_rows(own).tolist()
    mine = [r for r in range(group.size) if rows[r][:2] == rows[group.rank][:2]]
    ranks = tuple(sorted(mine, key=lambda rank: (rows[rank][2], rank)))
    return Part(ranks, ranks.index(group.rank), color is not None)


def make_in_step(
    group: Group, backend: str, make: Callable[[Callable[[], None]], T | None]
) -> tuple[T | None, Exception | None]:
    """Make this rank's part while the ranks of the parent stay in step; collective.

    ``group`` and ``backend`` are the group and the backend of the parent. ``make`` makes this
    rank's part. It gets a function that it is to call about every ``LOOK_S``; this function raises
    when another rank is lost or cannot continue.

    Return the part, or the error that all ranks are to raise.
    """
    least = PENDING
    made: T | None = None
    problem: Exception | None = None

    def look() -> None:
        nonlocal least
        least = UNHEARD
        least = group.agree(PENDING)
        if least == FAILED:
            raise InitializationFailed(backend, "another rank could not")

    try:
        made = make(look)
    except Exception as error:
        if least == UNHEARD:
            raise  # the parent is broken, and all its ranks learn that
        if least == PENDING:
            problem = error
            least = group.agree(FAILED)
    while least == PENDING:
        least = group.agree(DONE)
    if least == DONE:
        return made, None
    if made is not None:
        made.close()
    return None, _agreed_error(group, backend, problem)


def _agreed_error(group: Group, backend: str, problem: Exception | None) -> Exception:
    """Return the error of the first rank that has a problem, on all ranks; collective."""
    requested = -group.agree(-_requested_bytes(problem))
    found = first_problem(group, _reason(problem))
    return AllocationFailed(requested, found) if requested else InitializationFailed(backend, found)


def _reason(problem: Exception | None) -> str:
    if isinstance(problem, InitializationFailed):
        return str(problem.source)
    return reason_of(problem) if problem else ""


def _requested_bytes(problem: BaseException | None) -> int:
    """Return the bytes that were requested, if an allocation failed; else 0."""
    while problem is not None:
        if isinstance(problem, AllocationFailed):
            return problem.requested_bytes
        problem = problem.__cause__
    return 0
