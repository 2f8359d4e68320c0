"""The attempts of ``launch``: ranks in new processes call the function, and send the outcome.

Ranks are started, watched, judged and ended like those of every launcher
(``processes/attempt.py``).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from cobre_comm.errors import WorkerError
from cobre_comm.launching.interrupt import forwarded, postponed
from cobre_comm.launching.order import Order
from cobre_comm.launching.replies import Done, Failed, ProgressReport, exit_code_in, message_in
from cobre_comm.launching.reporting import OnProgress
from cobre_comm.processes.attempt import Attempt
from cobre_comm.processes.endings import Ending, describe_loss, exit_status, ranks_alike
from cobre_comm.processes.environment import rank_environment
from cobre_comm.processes.escalation import TERMINATE_S
from cobre_comm.processes.interpreter import calling, interpreter_command
from cobre_comm.processes.job import Job
from cobre_comm.processes.loop import NEVER, LauncherLoop, Outbox
from cobre_comm.processes.rank import RankProcess, Standard
from cobre_comm.processes.restarts import ASKED, AttemptEnding, Restarts, in_attempts
from cobre_comm.reports.trace_folder import trace_folder
from cobre_comm.system.log import logger
from cobre_comm.system.streams import open_standard

INTERRUPT_S = 1.0  # after the launcher has passed a Ctrl-C on, until it sends SIGTERM
LOOK_S = 0.1  # between two looks for dead ranks: a forked child may keep a dead rank's pipe open
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

    in_attempts(job, restarts, attempt, logger.warning, pause)
    if made[0].failure is not None:
        raise made[0].failure
    return made[0]


class LaunchedRank(RankProcess):
    """A rank in a new process, which calls the function; it gets its order through its stdin."""

    last_message: Done | Failed | None = None  # the outcome of the call

    def __init__(self, job: Job, rank: int, order: Order, loop: LauncherLoop) -> None:
        command = [*interpreter_command(), *calling("cobre_comm.launching.callee")]
        self._outbox = Outbox(loop)
        environment = rank_environment(job, rank, os.environ)
        standard = Standard(stdin=self._outbox.reader, others=order.descriptors)
        try:
            super().__init__(rank, command, environment, standard)
        except BaseException:
            self._outbox.close()
            raise
        self._outbox.send(order.message)

    def take(self, data: bytes) -> ProgressReport | None:
        """Take one message of the rank; return it if it is a report of progress.

        When a rank has sent the outcome of its call, it has ended for the launcher, though its
        process may still run for a moment.
        """
        message = message_in(data)
        if isinstance(message, ProgressReport):
            return message
        if not self._notes(message):
            self.last_message = message
            self.report = message.report if isinstance(message, Failed) else None
            code, now = exit_code_in(message), time.monotonic()
            self.ending = Ending(self.rank, code, now, self.report, self.aborts)
        return None

    def look(self) -> None:
        """Note whether the rank has ended; an exit code of 0 without a value is a failure too."""
        super().look()
        if self.ending is not None and self.last_message is None and self.ending.code == 0:
            self.ending = replace(self.ending, code=1)

    def error(self, ranks: Iterable[int] = ()) -> WorkerError:
        """Return the ``WorkerError`` of this rank; ``ranks`` are those with the same mistake."""
        if isinstance(self.last_message, Failed):
            return self.last_message.error(self.rank, ranks)
        code = self.exit_code()
        return WorkerError(self.rank, None if self.is_code_taken else code)  # the code is lost

    def reap(self) -> None:
        """Release the ended process and its pipes."""
        self._outbox.close()
        super().reap()


class LaunchedAttempt:
    """One attempt: all ranks get the same order, and call the function once."""

    def __init__(self, job: Job, order: Order, on_progress: OnProgress | None) -> None:
        self._job = job
        self._order = order
        self._on_progress = on_progress
        self._attempt = Attempt(job, logger.warning, INTERRUPT_S)
        self._why_final = ""  # why no further attempt is wanted
        self.ranks: list[LaunchedRank] = []
        self.failure: WorkerError | None = None  # the first failure; set when all ranks have ended
        self.lost: dict[int, WorkerError] = {}  # by rank: losses that the others survived

    @property
    def done(self) -> dict[int, Done]:
        """The last messages of the ranks that have returned a value, by rank."""
        said = {rank.rank: rank.last_message for rank in self.ranks}
        return {rank: message for rank, message in said.items() if isinstance(message, Done)}

    def run(self) -> AttemptEnding:
        """Start the ranks, and wait until all have ended; then no process of a rank is left."""
        try:
            try:
                with forwarded(self._ask_to_stop):
                    self._start()
                    self._attempt.until_all_ended(self._step)
            except KeyboardInterrupt:
                self._interrupt()
                raise
            return self._judge()
        finally:
            self._on_progress = None
            self._leave_nothing()

    def _ask_to_stop(self, number: int) -> None:
        """Pass on a signal by which the program asks all ranks to stop."""
        self._why_final = ASKED
        self._attempt.signal(number)

    def _start(self) -> None:
        """Start the ranks.

        SIGINT is blocked in a new rank until the rank can report a Ctrl-C, because an interpreter
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

    def _hear(self, rank: LaunchedRank, data: bytes) -> None:
        """Take a message of a rank; a report of progress goes to the program."""
        progress = rank.take(data)
        if self._attempt.escalation.ended_by_us != NEVER:
            self._on_progress = None
        if progress is not None and self._on_progress is not None:
            self._on_progress(rank.rank, progress.payload)

    def _step(self, until: float) -> None:
        """Read messages of the ranks until this time at most; then note which ranks have ended."""
        self._attempt.loop.step(min(until, time.monotonic() + LOOK_S))
        self._attempt.look()

    def _interrupt(self) -> None:
        """Pass a Ctrl-C on, and give the ranks a moment for their ``finally`` blocks."""
        self._on_progress = None
        self._attempt.escalation.signalled(signal.SIGINT, time.monotonic())
        self._attempt.signal(signal.SIGINT, group=True)
        self._attempt.until_all_ended(self._step)

    def _judge(self) -> AttemptEnding:
        """Note the first failure, and the ranks that were lost."""
        attempt = self._attempt
        self.lost = {rank: self.ranks[rank].error() for rank in attempt.lost}
        first, status, cause = attempt.failure, 0, ""
        if first is not None:
            self.failure = self.ranks[first.rank].error(ranks_alike(attempt.endings, first))
            status = exit_status(self.failure.exit_code or 1)
            cause = describe_loss(first)
        return attempt.ending(
            status, has_failed=first is not None, why_final=self._why_final, cause=cause
        )

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
