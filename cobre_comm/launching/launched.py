"""Ranks of ``launch`` that are new processes of this machine."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from functools import partial

from cobre_comm.launching.function import FunctionAttempt, FunctionRank, OnProgress, warn
from cobre_comm.launching.interrupt import forwarded, postponed
from cobre_comm.launching.order import Order, worker_command
from cobre_comm.launching.replies import Done
from cobre_comm.processes.environment import rank_environment
from cobre_comm.processes.escalation import TERMINATE_S
from cobre_comm.processes.job import Job
from cobre_comm.processes.loop import LauncherLoop, Outbox
from cobre_comm.processes.rank import RankProcess, Standard
from cobre_comm.processes.restarts import ASKED, AttemptEnding, Restarts, in_attempts
from cobre_comm.reports.trace_folder import trace_folder
from cobre_comm.system.streams import open_standard

EXIT_S = 10.0  # from a rank's value to the end of its process


def call_in_attempts(
    job: Job, order: Order, on_progress: OnProgress | None, restarts: Restarts
) -> LaunchedAttempt:
    """Return the attempt that succeeded; else raise the first failure of the last attempt."""
    open_standard()
    trace_folder()  # before on_progress can change the directory
    made: list[LaunchedAttempt] = []

    def attempt(here: Job) -> AttemptEnding:
        made[:] = [LaunchedAttempt(here, order, on_progress)]
        return made[0].run()

    def pause(seconds: float) -> int:
        time.sleep(seconds)
        return 0

    in_attempts(job, restarts, attempt, warn, pause)
    if made[0].failure is not None:
        raise made[0].failure
    return made[0]


class LaunchedRank(FunctionRank, RankProcess):
    """A rank in a new process; its order arrives through its stdin."""

    def __init__(self, job: Job, rank: int, order: Order, loop: LauncherLoop) -> None:
        self._outbox = Outbox(loop)
        environment = rank_environment(job, rank, os.environ)
        standard = Standard(stdin=self._outbox.reader, others=order.descriptors)
        try:
            super().__init__(rank, worker_command(), environment, standard)
        except BaseException:
            self._outbox.close()
            raise
        self._outbox.send(order.message)

    def look(self) -> None:
        """Note whether it has ended; an exit with 0 and without a value is a failure too."""
        super().look()
        if self.ending is not None and self.last_message is None and self.ending.code == 0:
            self.ending = replace(self.ending, code=1)

    def known_code(self) -> int | None:
        """Return the exit code of the process; None if somebody else has taken it."""
        code = self.exit_code()
        return None if self.is_code_taken else code

    def reap(self) -> None:
        """Let go of the ended process, and of its pipes."""
        self._outbox.close()
        super().reap()


class LaunchedAttempt(FunctionAttempt[LaunchedRank]):
    """One attempt of ranks in new processes, which all get the same order."""

    def __init__(self, job: Job, order: Order, on_progress: OnProgress | None) -> None:
        super().__init__(job, on_progress)
        self._order = order

    def _start_and_wait(self) -> None:
        with forwarded(self._ask_to_stop):
            super()._start_and_wait()

    def _ask_to_stop(self, number: int) -> None:
        """Pass on a signal by which the program asks all ranks to stop."""
        self._why_final = ASKED
        self._attempt.signal(number)

    def _start(self) -> None:
        """Start the ranks.

        They inherit a mask that keeps a Ctrl-C waiting until they can report it: an interpreter
        that is interrupted while it starts writes a traceback.
        """
        with postponed():
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                for number in self._job.ranks:
                    rank = LaunchedRank(self._job, number, self._order, self._attempt.loop)
                    self.ranks.append(rank)
                    self._attempt.add(rank, partial(self._hear, rank))
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _listen(self, until: float) -> None:
        self._attempt.loop.step(until)

    def _leave_nothing(self) -> None:
        """Give processes a moment to exit after their last message; end those that do not."""
        kept = [rank for rank in self.ranks if rank.rank not in self.lost]
        went_well = all(isinstance(rank.last_message, Done) for rank in kept)
        exit_s = EXIT_S if went_well else 0.0 if self._attempt.running else TERMINATE_S
        try:
            if not self._attempt.await_exits(time.monotonic() + exit_s):
                self._attempt.signal(signal.SIGTERM, group=True)
                self._attempt.await_exits(time.monotonic() + TERMINATE_S)
        finally:
            self._attempt.close()
