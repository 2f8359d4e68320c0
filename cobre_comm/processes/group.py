"""The ranks that one launcher has started, from start to end.

=========== ================================= =====================================================
a rank      from when on                      and then
=========== ================================= =====================================================
is starting ``mpiexec`` has started its shim  the shim gets its descriptors; other backends have no
                                              such state
runs        its process exists                the guardian watches it, the loop hears its report
                                              pipe: progress, values, how it failed, whom it lost
has ended   it is a zombie, or has reported   the escalation plans which signals the others get: at
            its value or failure              once if the failure is primary; after a wait for the
                                              rank that was lost if it is secondary
is killed   the last signal was sent          what it has left in its process group is ended:
                                              SIGTERM, a moment for the group to empty, SIGKILL
is reaped   all have ended                    names are removed, the guardian is let go
=========== ================================= =====================================================

A launcher that is killed does none of this: the kernel then ends ranks that die with their parent,
and the guardian ends their children and removes names.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from cobre_comm.processes.endings import Ending, of_survivors
from cobre_comm.processes.escalation import Escalation
from cobre_comm.processes.guardian import Guardian, end_groups, remove_name
from cobre_comm.processes.loop import NEVER, Loop
from cobre_comm.processes.rank import Rank
from cobre_comm.processes.traces import finish_traces

LOOK_S = 0.02  # how often to look for exits that no descriptor tells of


class Group:
    """Ranks that end together: when one fails, the others are ended.

    Parameters
    ----------
    shm_name : str
        Name of the job's segment.
    escalation : Escalation
        The schedule of their signals.
    """

    def __init__(self, shm_name: str, escalation: Escalation) -> None:
        self.loop = Loop()
        self.escalation = escalation
        self.guardian = Guardian(shm_name)
        self.ranks: list[Rank] = []
        self.killed: list[int] = []
        self._shm_name = shm_name
        self._known = 0  # endings that the escalation knows

    def add(self, rank: Rank, hear: Callable[[bytes], None] | None = None) -> None:
        """Take a rank in, as soon as it is started."""
        self.ranks.append(rank)
        if rank.pid:
            self.guardian.watch(rank.pid)
        rank.call_on_report(self._escalate)
        rank.serve(self.loop, hear)

    @property
    def running(self) -> list[Rank]:
        """The ranks without an ending, also those that have not begun."""
        return [rank for rank in self.ranks if rank.ending is None]

    @property
    def endings(self) -> list[Ending]:
        """The endings of the ranks that have ended."""
        return [rank.ending for rank in self.ranks if rank.ending is not None]

    @property
    def have_met(self) -> bool:
        """Whether the ranks have met: one of them has made its communicator."""
        return any(rank.has_met for rank in self.ranks)

    @property
    def decisive(self) -> list[Ending]:
        """The endings that decide how the job has ended: those of survivors, where there are."""
        goes_on = self.escalation.survive and self.have_met
        return of_survivors(self.endings) if goes_on else self.endings

    @property
    def lost_and_running(self) -> list[Rank]:
        """The ranks that run and have reported nothing, while another one has reported their loss.

        A lost rank that reports the loss of all others is not believed. One that has closed or
        given up is left out, because it is about to end.
        """
        told = {rank.rank: rank.reported for rank in self.ranks if rank.reported is not None}
        lost = {number for report in told.values() for number in report.lost}
        believed = {number for rank in told.keys() - lost for number in told[rank].lost} or lost
        ending = {number for report in told.values() if report.they_end for number in report.lost}
        return [rank for rank in self.running if rank.rank in believed - told.keys() - ending]

    def look(self) -> None:
        """Note which ranks have ended, and plan the end of the others if one has failed."""
        for rank in self.ranks:
            rank.look()
        if len(self.endings) != self._known:
            self._known = len(self.endings)
            self._escalate()

    def starter_ended(self, ending: Ending) -> None:
        """Plan the end of all ranks, because ``mpiexec`` has ended the job."""
        if self.escalation.began == NEVER:
            self._escalate(ending)

    def _escalate(self, *others: Ending) -> None:
        """Give the escalation all endings, and those announced by ranks that lost a running one."""
        running = {rank.rank for rank in self.running}
        announced = [rank.announced for rank in self.running if rank.announced is not None]
        announced = [ending for ending in announced if ending.lost & running]
        endings = [*self.endings, *announced, *others]
        self.escalation.ranks_ended(endings, running, time.monotonic(), have_met=self.have_met)

    def send(self, number: int) -> None:
        """Send a signal of the launcher to running ranks."""
        if number == signal.SIGKILL:
            self.killed += [rank.rank for rank in self.running]
        for rank in self.running:
            rank.signal(number, group=False)

    def end_all(self, wait: Callable[[float], bool]) -> None:
        """Kill the ranks that still run, and end what ranks have left in their process groups.

        Parameters
        ----------
        wait : callable
            Waits until a time at most; returns whether to wait no more.
        """
        begun = [rank for rank in self.ranks if rank.pid]
        for rank in begun:
            if rank.exit_code() is None:  # also one that has reported its value, and hangs
                os.kill(rank.pid, signal.SIGKILL)
        end_groups([rank.pid for rank in begun], wait)

    def await_exits(self, until: float) -> bool:
        """Wait for all processes to exit; return whether all have."""
        while any(rank.pid and rank.exit_code() is None for rank in self.ranks):
            if time.monotonic() >= until:
                return False
            self.loop.step(min(until, time.monotonic() + LOOK_S))
        return True

    def close(self) -> None:
        """Reap the ranks, which must have ended; remove names, finish traces, end the guardian."""
        for rank in self.ranks:
            self.guardian.forget(rank.pid)
            rank.reap()
        remove_name(self._shm_name)
        finish_traces(self._shm_name.lstrip("/"), (rank.rank for rank in self.ranks))
        self.guardian.end()
