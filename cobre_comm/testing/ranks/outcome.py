"""The outcome of a body on one rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LONGEST_TRACEBACK = 3000  # characters; the end is kept, because it says most


@dataclass(frozen=True)
class Outcome:
    """The outcome of a body on one rank: a value, an exception, or the end of its process.

    Attributes
    ----------
    rank : int
        The rank.
    value : object
        The value that the body returned, if it returned.
    exception : BaseException or None
        The exception that the body raised, if it raised one.
    traceback : str
        The traceback of that exception, formatted on the rank.
    ended : bool
        Whether the process ended without a report.
    exit_code : int or None
        The exit code of a process that ended without a report, negative for a signal; None if the
        code is not known, because mpiexec has ended all processes.
    timed_out : bool
        Whether the deadline ended the process.
    output : str
        The end of what the process wrote during the body.

    Examples
    --------
    >>> from cobre_comm.testing import Outcome
    >>> Outcome(0, value=7).ok
    True
    """

    rank: int
    value: Any = None
    exception: BaseException | None = None
    traceback: str = ""
    ended: bool = False
    exit_code: int | None = None
    timed_out: bool = False
    output: str = ""

    @property
    def ok(self) -> bool:
        """Whether the body returned.

        Examples
        --------
        >>> from cobre_comm.testing import Outcome
        >>> Outcome(1, ended=True, exit_code=-9).ok
        False
        """
        return self.exception is None and not self.ended and not self.timed_out

    def describe(self) -> str:
        """Return a paragraph for a failed rank.

        Examples
        --------
        >>> from cobre_comm.testing import Outcome
        >>> Outcome(0, value=7).describe()
        'rank 0 returned 7'
        """
        if self.exception is not None:
            text = self.traceback or repr(self.exception)
            return f"rank {self.rank} raised:\n{text[-LONGEST_TRACEBACK:]}"
        if self.timed_out:
            return f"rank {self.rank} was still busy at the deadline:\n{self.output}"
        if self.ended:
            code = "an exit code not known" if self.exit_code is None else self.exit_code
            return f"rank {self.rank} ended with exit code {code}:\n{self.output}"
        return f"rank {self.rank} returned {self.value!r}"


class RanksFailed(AssertionError):  # named as a sentence, like CollectiveFailed
    """A body did not end as expected on some ranks.

    Parameters
    ----------
    outcomes : sequence of Outcome
        The outcome of every rank.
    message : str
        The result that was expected instead.

    Examples
    --------
    >>> from cobre_comm.testing import Outcome, RanksFailed
    >>> print(RanksFailed([Outcome(0), Outcome(1, exception=OSError("x"))], "1 rank failed"))
    1 rank failed
    rank 1 raised:
    OSError('x')
    """

    def __init__(self, outcomes: Sequence[Outcome], message: str = "") -> None:
        self.outcomes = list(outcomes)
        failed = [outcome for outcome in outcomes if not outcome.ok] or list(outcomes)
        super().__init__("\n".join([message, *(outcome.describe() for outcome in failed)]))


def values_of(outcomes: Sequence[Outcome]) -> list[Any]:
    """Return the value of every rank, or raise :class:`RanksFailed`."""
    if not all(outcome.ok for outcome in outcomes):
        cause = next((o.exception for o in outcomes if o.exception is not None), None)
        raise RanksFailed(outcomes, f"{sum(not o.ok for o in outcomes)} ranks failed") from cause
    return [outcome.value for outcome in outcomes]


def exceptions_of(
    outcomes: Sequence[Outcome], expect: type[BaseException] | tuple[type[BaseException], ...]
) -> list[BaseException]:
    """Return the exception of every rank, or raise :class:`RanksFailed` if a rank raised none."""
    exceptions = [o.exception for o in outcomes if isinstance(o.exception, expect)]
    if len(exceptions) != len(outcomes):
        raise RanksFailed(outcomes, f"every rank should raise {expect}")
    return exceptions
