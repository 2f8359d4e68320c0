"""The escalation: which signals running ranks get, and when, after the job has begun to end."""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterable

from cobre_comm.processes.endings import Ending
from cobre_comm.processes.loop import NEVER
from cobre_comm.system.cores import usable_cores

GRACE_S = 5.0  # the time that ranks get to end after a forwarded signal
LAST_WORDS_S = 0.3  # the time for other ranks to notice the loss by themselves, and to report it
CULPRIT_S = 4.0  # the time for a lost rank to end, if all failures so far follow from its loss
CULPRIT_OVER_MPI_S = 15.0  # over MPI this takes longer, because all ranks first finish MPI_Finalize
TERMINATE_S = 0.7  # the time between SIGTERM and SIGKILL
END_S = 0.25  # seconds of a core for one rank to end Python with all that it has loaded


def where_crowded(seconds: float, ranks: int) -> float:
    """Return a time limit for all ranks to end; ``seconds`` is the limit if each rank has a core.

    Ranks that share a core end one after another. So the limit is ``END_S`` longer for each rank
    beyond the first on a core.
    """
    return seconds + END_S * max(0.0, ranks / usable_cores() - 1)


class Escalation:
    """A schedule of signals, which is empty while the job goes well.

    Ranks may take ``grace_s`` seconds to end after a signal that the launcher has forwarded. A rank
    that other ranks have lost may take ``culprit_s`` seconds to end. With ``survive``, the other
    ranks continue after the loss of a rank. They are ended in two cases only: after the failure of
    a survivor, and if a rank is lost before the ranks have met, because then they would wait for
    the lost rank.
    """

    def __init__(
        self, grace_s: float = 0.0, culprit_s: float = CULPRIT_S, *, survive: bool = False
    ) -> None:
        self._grace_s = grace_s
        self._culprit_s = culprit_s
        self.survive = survive
        self._plan: list[tuple[float, int]] = []
        self._awaits_culprit = True
        self.cause = 0  # the first signal from outside that ends the job
        self.began = NEVER  # when a rank failed, or when that signal arrived
        # When the launcher sent its own first signal. A rank that ends later may end because of it.
        self.ended_by_us = NEVER

    @property
    def next_at(self) -> float:
        """The time at which the next signal is due."""
        return self._plan[0][0] if self._plan else NEVER

    def ranks_ended(
        self,
        endings: Iterable[Ending],
        running: Collection[int],
        now: float,
        *,
        have_met: bool = True,
    ) -> None:
        """Plan the end of the other ranks when one has failed; call this after each ending.

        Call this also when the ranks have met: with ``survive``, a rank that died before the ranks
        met now counts as lost, and the others continue.

        Ranks get time for last words. As long as every failure follows from the loss of a rank that
        still runs, the lost rank gets more time, because its own exit code and last words tell the
        cause.
        """
        failed = [
            ending
            for ending in endings
            if ending.code != 0 and not (self.survive and have_met and ending.is_loss)
        ]
        if self.cause or self.ended_by_us != NEVER:
            return
        if not failed:
            if self.survive:
                self._plan, self.began, self._awaits_culprit = [], NEVER, True
            return
        if not self._awaits_culprit:
            return
        self.began = min(self.began, now)
        culprits = frozenset().union(*(ending.lost for ending in failed))
        if all(ending.secondary for ending in failed) and not culprits.isdisjoint(running):
            self._terminate_at(self.began + self._culprit_s)
        else:
            self._awaits_culprit = False
            self._terminate_at(now + LAST_WORDS_S)

    def signalled(self, number: int, now: float) -> None:
        """Plan the end after a signal that ranks get too; at once if the job is ending already."""
        if self.began != NEVER:
            self._plan = [(now, signal.SIGKILL)]
            return
        self.cause, self.began = number, now
        self._terminate_at(now + self._grace_s)

    def _terminate_at(self, at: float) -> None:
        self._plan = [(at, signal.SIGTERM), (at + TERMINATE_S, signal.SIGKILL)]

    def due(self, now: float) -> list[int]:
        """Return the signals that are to be sent now."""
        numbers = [number for at, number in self._plan if at <= now]
        self._plan = [(at, number) for at, number in self._plan if at > now]
        if numbers and self.ended_by_us == NEVER:
            self.ended_by_us = now
        return numbers
