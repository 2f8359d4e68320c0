"""A check, the point at which it runs, and its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cobre_comm.testing.ranks.pool import RankPool

TIMEOUT_S = 240.0  # of one check; the first run on a machine compiles meanwhile

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
    """A backend and a number of ranks.

    Attributes
    ----------
    backend : str
        As :class:`~cobre_comm.testing.BackendName` takes it.
    ranks : int
        How many.
    """

    backend: str
    ranks: int

    def __str__(self) -> str:
        return f"{self.backend}, {self.ranks} rank{'s' * (self.ranks != 1)}"


@dataclass(frozen=True)
class Check:
    """A check of one promise.

    Attributes
    ----------
    column : str
        A key of :data:`COLUMNS`.
    name : str
        The promise, in a few words.
    run : callable
        Tries it on ranks; raises if it is not so.
    """

    column: str
    name: str
    run: Callable[[RankPool], object]


@dataclass(frozen=True)
class Result:
    """The result of a check.

    Attributes
    ----------
    point : Point
        The point at which the check ran.
    column, name : str
        Of the check.
    seconds : float
        How long it took, starting the ranks included.
    detail : str
        The failure; empty if the check passed.
    """

    point: Point
    column: str
    name: str
    seconds: float
    detail: str = ""

    @property
    def passed(self) -> bool:
        """Whether the check passed."""
        return not self.detail


@dataclass(frozen=True)
class Missing:
    """A backend that cannot run here.

    Attributes
    ----------
    backend : str
        Its name.
    reason : str
        Why, and what to do about it.
    asked : bool
        Whether the user asked for it by name.
    """

    backend: str
    reason: str
    asked: bool
