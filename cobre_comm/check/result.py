"""A check, the point at which it runs, and its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cobre_comm.journal.stats import Stats
from cobre_comm.testing.ranks.pool import RankPool

TIMEOUT_S = 240.0  # for one check, including compilation in the first run on a machine

COLUMNS = {
    "python": "collectives (python)",
    "njit": "collectives (njit)",
    "regions": "regions",
    "errors": "errors",
    "bits": "same bits",
    "killed": "killed rank",
    "sddp": "SDDP",
}
"""What is checked, in the order in which it is done."""


@dataclass(frozen=True, order=True)
class Point:
    """A backend and a number of ranks."""

    backend: str  # as ``BackendName`` takes it
    ranks: int

    def __str__(self) -> str:
        return f"{self.backend}, {self.ranks} rank{'s' * (self.ranks != 1)}"


@dataclass(frozen=True)
class Check:
    """A check of one promise."""

    column: str  # a key of ``COLUMNS``
    name: str  # the promise, in a few words
    run: Callable[[RankPool], object]  # tries the promise on ranks; raises if the promise is broken


@dataclass(frozen=True)
class Result:
    """The result of a check."""

    point: Point
    column: str
    name: str
    seconds: float  # how long the check took, including the start of its ranks
    detail: str = ""  # a text about the failure; "" if the check passed
    stats: Stats | None = None  # which way large calls take, if the check has found that

    @property
    def passed(self) -> bool:
        """Whether the check passed."""
        return not self.detail


@dataclass(frozen=True)
class Missing:
    """A backend that cannot run here."""

    backend: str
    reason: str  # why it cannot run, and what to do about that
    asked: bool  # whether the user asked for this backend by name
