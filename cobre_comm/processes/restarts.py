"""Whether a job is started again after it has lost a rank, after which pause, and with how many.

An attempt is one start of all ranks of a job, up to their end. A job has at most as many restarts
as its user allows. It is given up earlier where a further attempt cannot help: it was asked to end,
its arguments are wrong, or it has died at once in as many attempts in a row.
"""

from __future__ import annotations

import operator
import signal
from collections.abc import Iterable
from typing import NamedTuple

from cobre_comm.processes.rank import Rank

FIRST_PAUSE_S = 1.0  # doubled for each attempt in a row that died at once
LONGEST_PAUSE_S = 60.0
AT_ONCE_S = 10.0  # after its start; a rank that has made its communicator had begun its work
USAGE = 2  # the exit code of argparse, and of Python without its script


class Outcome(NamedTuple):
    """How an attempt ended, as far as it decides on the next one."""

    status: int  # the exit code of the launcher, if there is no further attempt
    has_failed: bool = False  # whether a rank has
    at_once: bool = False  # whether it died before it had begun its work
    killed: int = 0  # ranks that SIGKILL has ended, which the kernel sends when memory is short
    why_final: str = ""  # why no further attempt is wanted
    is_lost: bool = False  # whether all its ranks are lost, each by a cause of its own


class Restarts:
    """The restarts of one job.

    Parameters
    ----------
    most : int
        How often it may be started again.
    least : int
        The fewest ranks it may go on with.

    Attributes
    ----------
    most, least : int
        The parameters.
    pause_s : float
        How long to wait before the next attempt.
    """

    def __init__(self, most: int = 0, least: int = 1) -> None:
        self.most = most
        self.least = least
        self.pause_s = FIRST_PAUSE_S
        self._done = 0
        self._at_once = 0  # attempts in a row

    def why_not(self, outcome: Outcome) -> str:
        """Count an attempt that failed; return why it is the last one, or an empty string."""
        if not outcome.at_once:
            self._at_once, self.pause_s = 0, FIRST_PAUSE_S
        else:
            self._at_once += 1
            if self._at_once > 1:
                self.pause_s = min(2 * self.pause_s, LONGEST_PAUSE_S)
        if outcome.why_final:
            return outcome.why_final
        if outcome.status == USAGE:
            return f"exit code {USAGE} says that its arguments are wrong"
        if self._done == self.most:
            return f"it has been, {times(self.most)}"
        if self._at_once == self.most:
            return f"it has died at once, {times(self.most)} in a row"
        self._done += 1
        return ""

    def size(self, size: int, killed: int) -> int:
        """Return the number of ranks of the next attempt, after one of ``size`` ranks.

        Ranks that SIGKILL has ended are left out, because there may be no memory for them.
        """
        return max(min(self.least, size), size - killed)

    def plan(self, size: int | None = None) -> str:
        """Say, in one sentence, that the job is started again; None: the size is not known yet."""
        which = f"restart {self._done} of {self.most}"
        ranks = "" if size is None else f", on {size} rank{'s'[: size > 1]}"
        return f"the job is started again in {self.pause_s:g} s{ranks} ({which})"


def given_up(why: str) -> str:
    """Say, in one sentence, why a job is not started again."""
    return f"the job is not started again: {why}"


def times(count: int) -> str:
    """Return a number of times in words."""
    return "once" if count == 1 else f"{count} times"


def check_restarts(most: int, least: int | None, size: int) -> Restarts:
    """Return the restarts of a job of ``size`` ranks; ``ValueError`` for numbers that make none."""
    most = operator.index(most)
    if most < 0:
        raise ValueError(f"max-restarts must be 0 or more, got {most}")
    if least is None:
        return Restarts(most, size)
    if not 1 <= operator.index(least) <= size:
        raise ValueError(f"min-ranks must be between 1 and {size}, got {least}")
    if not most:
        raise ValueError("min-ranks is for a restart: say how many there may be, by max-restarts")
    return Restarts(most, least)


def died_at_once(ranks: Iterable[Rank], lasted_s: float) -> bool:
    """Tell whether an attempt ended soon, and before any of its ranks had a communicator."""
    return lasted_s < AT_ONCE_S and not any(rank.has_met for rank in ranks)


def killed_by_others(ranks: Iterable[Rank], ended_by_us: float) -> int:
    """Return how many ranks SIGKILL has ended before the launcher sent a signal itself."""
    endings = [rank.ending for rank in ranks if rank.ending is not None]
    return sum(end.code == -signal.SIGKILL and end.at <= ended_by_us for end in endings)
