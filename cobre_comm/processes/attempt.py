"""One attempt of a job on this machine: its ranks are started, heard, ended and judged here.

Every launcher adds its ranks to an attempt, and waits until all have ended:

=========== ================================= =====================================================
a rank      from when on                      and then
=========== ================================= =====================================================
is starting ``mpiexec`` runs                  its shim has the launcher start it; ranks of other
                                              backends have no such state
runs        its process exists                the guardian watches it, the loop hears its report
                                              pipe: progress, values, how it failed, whom it lost
has ended   it is a zombie, or has reported   the escalation plans which signals the others get: for
            its value or failure              a primary failure at once; for a secondary failure
                                              after a wait for the rank that was lost
is killed   the last signal was sent          what it has left in its process group is ended:
                                              SIGTERM, a moment for the group to empty, SIGKILL
is reaped   all have ended                    names are removed, the guardian is let go
=========== ================================= =====================================================

A launcher that is killed does none of this. In that case the kernel ends the ranks that die with
their parent, and the guardian ends all other ranks and all children, and removes names.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from cobre_comm.contract.closing import Closing
from cobre_comm.processes import restarts
from cobre_comm.processes.endings import (
    Ending,
    describe_loss,
    first_failure,
    of_survivors,
    with_abort,
)
from cobre_comm.processes.escalation import (
    CULPRIT_OVER_MPI_S,
    CULPRIT_S,
    Escalation,
    where_crowded,
)
from cobre_comm.processes.guardian import Guardian, end_groups, has_signal, remove_name
from cobre_comm.processes.job import Job
from cobre_comm.processes.job_control import JobControl
from cobre_comm.processes.loop import NEVER, LauncherLoop
from cobre_comm.processes.rank import RankProcess
from cobre_comm.processes.restarts import AttemptEnding
from cobre_comm.processes.traces import finish_traces
from cobre_comm.reports import stack_signal
from cobre_comm.reports.graceful import FORWARDED

if TYPE_CHECKING:
    from cobre_comm.processes.mpi.start import MpiStart

LOOK_S = 0.02  # the time between two looks for exits that no descriptor reports


class Attempt(Closing):
    """The ranks that a job has on this machine, from their start to their end.

    Make and close an attempt in the thread that starts the ranks and waits for them. ``say`` gets a
    sentence for the user while ranks run. After a signal that the launcher passes on, ranks may
    take ``grace_s`` seconds to end.
    """

    def __init__(self, job: Job, say: Callable[[str], None], grace_s: float = 0.0) -> None:
        culprit_s = CULPRIT_OVER_MPI_S if job.backend == "mpi" else CULPRIT_S
        culprit_s = where_crowded(culprit_s, len(job.ranks))
        self.escalation = Escalation(grace_s, culprit_s, survive=job.survive)
        self.loop = LauncherLoop()
        self.guardian = Guardian(job.shm_name, FORWARDED)
        self.ranks: list[RankProcess] = []
        self.job_control = JobControl(self.ranks)
        self.starter: MpiStart | None = None  # the mpiexec that starts the ranks
        self.lost: dict[int, Ending] = {}  # lost ranks that were reported to the user
        self.shown: set[int] = set()  # ranks that were asked to show where in their code they are
        self.killed: list[int] = []
        self._job = job
        self._say = say
        self._began = time.monotonic()
        self._known = 0  # the number of endings that the escalation knows

    def add(self, rank: RankProcess, hear: Callable[[bytes], None] | None = None) -> None:
        """Add a rank, as soon as it is started."""
        self.ranks.append(rank)
        self.guardian.watch(rank.pid)
        rank.serve(self.loop, self._escalate, hear)

    @property
    def running(self) -> list[RankProcess]:
        """The ranks that have been started and have no ending yet."""
        return [rank for rank in self.ranks if rank.ending is None]

    @property
    def is_starting(self) -> bool:
        """Whether ``mpiexec`` has yet to start some ranks."""
        return self.starter is not None and self.starter.is_starting

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
        """The endings that decide how the job has ended: of survivors, if there are survivors."""
        goes_on = self.escalation.survive and self.have_met
        return of_survivors(self.endings) if goes_on else self.endings

    @property
    def by_themselves(self) -> list[Ending]:
        """The decisive endings until the launcher's first signal, which may cause any later one."""
        endings = [end for end in self.decisive if end.at <= self.escalation.ended_by_us]
        starter = None if self.starter is None else self.starter.ending
        return endings if starter is None else with_abort(endings, starter)

    @property
    def failure(self) -> Ending | None:
        """The failure to show to the user, when all ranks have ended; None if nothing failed."""
        return first_failure(self.by_themselves) or first_failure(self.decisive)

    def ending(
        self, status: int, *, has_failed: bool, why_final: str, cause: str = ""
    ) -> AttemptEnding:
        """Return how the attempt has ended, with the exit code that the launcher chooses."""
        ours, lasted_s = self.escalation.ended_by_us, time.monotonic() - self._began
        return AttemptEnding(
            status,
            has_failed=has_failed,
            at_once=lasted_s < restarts.AT_ONCE_S and not self.have_met,
            killed=sum(end.code == -signal.SIGKILL and end.at <= ours for end in self.endings),
            why_final=why_final,
            cause=cause,
        )

    def until_all_ended(self, step: Callable[[float], object]) -> None:
        """Wait until all ranks have ended; when one has failed, end the others.

        ``step`` waits until a descriptor is ready, but no longer than until a given time, and calls
        :meth:`look` when ranks may have ended.
        """
        self.look()  # a rank may have ended while others were started
        while self.running or self.is_starting:
            step(self.escalation.next_at)
            self._show_lost()
            self._tell_losses()
            if self.starter is not None:
                self._look_at(self.starter)
            for number in self.escalation.due(time.monotonic()):
                self._send(number)

    def look(self) -> None:
        """Note which ranks have ended, and plan the end of the other ranks if one has failed."""
        if self.starter is not None:
            self.starter.look()
        for rank in self.ranks:
            rank.look()
        if len(self.endings) != self._known:
            self._known = len(self.endings)
            self._escalate()

    def _look_at(self, starter: MpiStart) -> None:
        """Note that ``mpiexec`` has ended the job, and the files that MPI may then leave."""
        if starter.ending is not None and self.escalation.began == NEVER:
            self._escalate(starter.ending)
        starter.find_leftovers(self.ranks, self.have_met + (self.escalation.began != NEVER))

    def _escalate(self, *others: Ending) -> None:
        """Give the escalation all endings; over MPI, also those that running ranks announce."""
        running = {rank.rank for rank in self.running}
        # Over MPI, a rank that has lost a running rank may hang in MPI_Finalize until all ranks
        # arrive. So the failure that the rank has reported counts before its process ends.
        hanging = [rank.announced for rank in self.running if self.starter is not None]
        announced = [ending for ending in hanging if ending is not None and ending.lost & running]
        endings = [*self.endings, *announced, *others]
        self.escalation.ranks_ended(endings, running, time.monotonic(), have_met=self.have_met)

    def _tell_losses(self) -> None:
        """Report each lost rank once, if the other ranks continue, or had ended well."""
        if not self.escalation.survive or self.escalation.began != NEVER:
            return
        losses = {ending.rank: ending for ending in self.endings if ending.is_loss}
        if len(losses) == len(self.ranks):
            return
        others = "the other ranks go on" if self.running else "the other ranks had ended"
        for rank in sorted(losses.keys() - self.lost.keys()):
            self.lost[rank] = losses[rank]
            self._say(f"{describe_loss(losses[rank])}; {others}")

    def _show_lost(self) -> None:
        """Ask lost ranks that still run to show where in their code they are.

        After the launcher's own first signal no rank is asked: from then on a rank may report the
        loss of another rank only because the launcher has ended that other rank.
        """
        if self.escalation.ended_by_us != NEVER:
            return
        if self.lost_and_running:
            self.look()  # a report about a dead rank may arrive before its SIGCHLD
        for rank in self.lost_and_running:
            if rank.rank not in self.shown:
                self.shown.add(rank.rank)
                if has_signal(rank.pid, "SigCgt:", stack_signal.NUMBER):  # else it would be killed
                    self._say(  # before the rank, which may write to the same file
                        f"rank {rank.rank} still runs; where in its Python code, or in "
                        "compiled code that the first line calls:"
                    )
                    stack_signal.ask(rank.pid)

    @property
    def lost_and_running(self) -> list[RankProcess]:
        """The ranks that run and have reported nothing, while another rank has reported their loss.

        A lost rank that reports the loss of all others is not believed. A rank that has closed its
        communicator or given up is left out, because it is about to end.
        """
        told = {rank.rank: rank.report for rank in self.ranks if rank.report is not None}
        lost = {number for report in told.values() for number in report.lost}
        believed = {number for rank in told.keys() - lost for number in told[rank].lost} or lost
        ending = {number for report in told.values() if report.they_end for number in report.lost}
        return [rank for rank in self.running if rank.rank in believed - told.keys() - ending]

    def _send(self, number: int) -> None:
        """Send a signal of the launcher to running ranks."""
        if number == signal.SIGKILL:
            self.killed += [rank.rank for rank in self.running]
        for rank in self.running:
            rank.signal(number, group=False)
        if number == signal.SIGKILL and self.starter is not None:
            self.starter.end_starting()

    def signal(self, number: int, *, group: bool = False) -> None:
        """Pass a signal on to all ranks, or to their process groups."""
        for rank in self.ranks:
            rank.signal(number, group=group)

    def await_exits(self, until: float) -> bool:
        """Wait for all processes to exit; return whether all have."""
        while any(rank.exit_code() is None for rank in self.ranks):
            if time.monotonic() >= until:
                return False
            self.loop.step(min(until, time.monotonic() + LOOK_S))
        return True

    def close(self, wait: Callable[[float], bool] | None = None) -> None:
        """End what still runs, reap the ranks, remove names, finish traces, end the guardian.

        ``wait`` waits until a given time at most, and returns whether to stop waiting.
        """
        try:
            for rank in self.ranks:
                if rank.exit_code() is None:  # a rank may hang after it has reported its value
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(rank.pid, signal.SIGKILL)
            end_groups([rank.pid for rank in self.ranks if rank.has_group], wait or self._wait)
            if self.starter is not None:
                self.starter.process.signal(signal.SIGKILL, group=True)
        finally:
            self.job_control.close()
            if self.starter is not None:
                self.starter.process.reap()
            for rank in self.ranks:
                self.guardian.forget(rank.pid)
                rank.reap()
            remove_name(self._job.shm_name)
            finish_traces(self._job.identity, (rank.rank for rank in self.ranks))
            self.guardian.end()

    def _wait(self, until: float) -> bool:
        self.loop.step(until)
        return False
