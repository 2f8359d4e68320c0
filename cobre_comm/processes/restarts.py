"""Decides if a job that lost a rank is started again, after which pause, and on how many ranks.

An attempt is one start of all ranks of a job, up to their end. The user allows a job a number of
restarts. The job is given up earlier if a further attempt cannot help: because the job was asked to
end, because its arguments are wrong, or because attempts have ended at once, as many in a row as
there may be restarts.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NamedTuple

from cobre_comm.errors import signal_name
from cobre_comm.processes.job import Job
from cobre_comm.processes.port import with_rendezvous

FIRST_PAUSE_S = 1.0  # doubled with each further attempt in a row that ended at once
LONGEST_PAUSE_S = 60.0
AT_ONCE_S = 10.0  # a shorter attempt without a communicator has ended at once
ASKED = "it was asked to end"
USAGE = 2  # the exit code of argparse, and of Python if there is no script


class AttemptEnding(NamedTuple):
    """The facts about the end of an attempt that decide about the next attempt."""

    status: int  # the exit code of the launcher, if there is no further attempt
    has_failed: bool = False  # whether a rank has failed
    at_once: bool = False  # whether the attempt ended soon, before any rank had a communicator
    killed: int = 0  # ranks that SIGKILL has ended; the kernel sends it when memory is short
    why_final: str = ""  # the reason why there should be no further attempt
    cause: str = ""  # a sentence about the first failure, if the user has not seen it yet


class Restarts:
    """The restarts of one job: at most ``most`` of them, each with at least ``least`` ranks."""

    def __init__(self, most: int, least: int) -> None:
        self.most = most
        self.least = least
        self.pause_s = FIRST_PAUSE_S  # the pause before the next attempt
        self._done = 0
        self._at_once = 0  # number of attempts in a row that have ended at once

    def why_not(self, ended: AttemptEnding) -> str:
        """Count an attempt that failed; return why it was the last, or an empty string."""
        if not ended.at_once:
            self._at_once, self.pause_s = 0, FIRST_PAUSE_S
        else:
            self._at_once += 1
            if self._at_once > 1:
                self.pause_s = min(2 * self.pause_s, LONGEST_PAUSE_S)
        if ended.why_final:
            return ended.why_final
        if ended.status == USAGE:
            return f"exit code {USAGE} says that its arguments are wrong"
        if self._done == self.most:
            return f"it has been, {times(self.most)}"
        if self._at_once == self.most:
            return f"it has died at once, {times(self.most)} in a row"
        self._done += 1
        return ""

    def size(self, size: int, killed: int) -> int:
        """Return the number of ranks of the next attempt; the last attempt had ``size`` ranks.

        Ranks that SIGKILL has ended are left out, because there may be too little memory for them.
        """
        return max(min(self.least, size), size - killed)

    def plan(self, size: int) -> str:
        """Return a sentence that says that the job is started again."""
        which = f"restart {self._done} of {self.most}"
        ranks = f"on {size} rank{'s'[: size > 1]}"
        return f"the job is started again in {self.pause_s:g} s, {ranks} ({which})"


def times(count: int) -> str:
    """Return a number of times in words."""
    return "once" if count == 1 else f"{count} times"


def check_restarts(most: int, least: int | None, size: int) -> Restarts:
    """Return the restarts of a job of ``size`` ranks; ``ValueError`` for impossible numbers."""
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


def in_attempts(
    job: Job,
    restarts: Restarts,
    attempt: Callable[[Job], AttemptEnding],
    say: Callable[[str], None],
    pause: Callable[[float], int],
) -> AttemptEnding:
    """Run the attempts of a job; return how the last attempt has ended.

    ``attempt`` starts all ranks of a job, and returns how they have ended. ``say`` gets a sentence
    for the user. ``pause`` waits for some seconds, and returns 0; if a signal asks the launcher to
    end meanwhile, it returns the number of the signal.
    """
    while True:
        with with_rendezvous(job) as here:
            ended = attempt(here)
        if not (ended.has_failed and restarts.most):
            return ended
        why = restarts.why_not(ended)
        if why:
            say(f"the job is not started again: {why}")
            return ended
        job = job.again(restarts.size(job.size, ended.killed))
        say("; ".join(filter(None, [ended.cause, restarts.plan(job.size)])))
        number = pause(restarts.pause_s)
        if number:
            say(f"ended by {signal_name(number)}")
            return ended._replace(status=128 + number)
