"""How the ranks of a group agree on whether each of them could do its part of a step."""

from __future__ import annotations

import abc
import re
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cobre_comm.errors import AllocationFailed
from cobre_comm.reports.exception_text import text_of

REASON_BYTES = 480

T = TypeVar("T")


class Group(abc.ABC):
    """Ranks that can send each other rows, which is all that an agreement needs."""

    __slots__ = ()
    rank: int
    size: int

    def agree(self, value: int) -> int:
        """Return the smallest of the values of all ranks; collective."""
        return int(self.gather_rows(np.array([value], dtype=np.int64)).min())

    @abc.abstractmethod
    def gather_rows(self, row: NDArray[Any]) -> NDArray[Any]:
        """Gather one row from each rank, all of one length and dtype; collective."""


def attempt(make: Callable[[], T]) -> tuple[T | None, str]:
    """Return the result of a function and "", or None and the text of the function's exception.

    Every exception counts, because the other ranks wait to learn whether this rank has a problem.
    """
    try:
        return make(), ""
    except Exception as error:
        return None, reason_of(error)


def reason_of(error: Exception) -> str:
    """Return the text of an exception, to be part of another exception's message."""
    if isinstance(error, AllocationFailed):
        return error.message
    return text_of(error) or type(error).__name__


def first_problem(group: Group, problem: str) -> str:
    """Return the problem of the first rank that has one, "" if none has; collective."""
    first = group.agree(group.rank if problem else group.size)
    if first == group.size:
        return ""
    if not 0 <= first < group.size:
        return "the ranks do not agree on which of them could not do its part"
    # If the ranks of a node or of a part have agreed on this problem before, its text begins with a
    # rank's number in that node or part, which is not the number in this group.
    problem = re.sub(r"^(?=rank \d+: )", "on its node or in its part, ", problem)
    words = f"rank {group.rank}: {problem}".encode()[:REASON_BYTES].ljust(REASON_BYTES, b"\0")
    text: bytes = group.gather_rows(np.frombuffer(words, dtype=np.uint8))[first].tobytes()
    return text.rstrip(b"\0").decode(errors="replace")


def agree_on_memory(group: Group, nbytes: int, problem: str) -> None:
    """Raise ``AllocationFailed`` on all ranks if one of them has a problem; collective."""
    found = first_problem(group, problem)
    if found:
        raise AllocationFailed(nbytes, found)
