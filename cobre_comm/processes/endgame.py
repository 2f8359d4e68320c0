"""When ranks that still run get which signal, once it is clear that the job ends."""

from __future__ import annotations

import signal

from cobre_comm.processes.endings import LAST_WORDS_S, TERMINATE_S

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
FORWARDED_SIGNALS = (*ENDING_SIGNALS, signal.SIGUSR1, signal.SIGUSR2)
# What a terminal sends, it sends to a whole process group.
GROUP_SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)

NEVER = float("inf")


class Endgame:
    """A schedule of signals, none while the job goes well.

    Parameters
    ----------
    grace_s : float
        How long ranks may take to end after a signal that the launcher forwarded.

    Attributes
    ----------
    cause : int
        The first ending signal that came from outside; 0 if there was none.
    began : float
        When a rank failed or that signal came.
    ended_by_us : float
        When the first signal of our own was sent; what ends later proves nothing.
    """

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._plan: list[tuple[float, int]] = []
        self.cause = 0
        self.began = NEVER
        self.ended_by_us = NEVER

    @property
    def next_at(self) -> float:
        """When the next signal is due."""
        return self._plan[0][0] if self._plan else NEVER

    def rank_failed(self, now: float) -> None:
        """Give the others time for last words, then end them."""
        if self.began == NEVER:
            self.began = now
            terminate = now + LAST_WORDS_S
            self._plan = [(terminate, signal.SIGTERM), (terminate + TERMINATE_S, signal.SIGKILL)]

    def signalled(self, number: int, now: float) -> None:
        """Give the ranks, who got that signal too, time to end; none if it is not the first."""
        if self.began != NEVER:
            self._plan = [(now, signal.SIGKILL)]
            return
        self.cause, self.began = number, now
        kill_at = now + self._grace_s
        self._plan = [(kill_at, signal.SIGTERM), (kill_at + TERMINATE_S, signal.SIGKILL)]

    def due(self, now: float) -> list[int]:
        """Return the signals to send now."""
        numbers = [number for at, number in self._plan if at <= now]
        self._plan = [(at, number) for at, number in self._plan if at > now]
        if numbers and self.ended_by_us == NEVER:
            self.ended_by_us = now
        return numbers
