"""An attempt of ``launch``: its ranks call the function, and send back the outcome.

The ranks are heard, ended and judged as those of every launcher (``processes/attempt.py``). They
are new processes (``launched.py``), or workers of an executor (``executor/call.py``).
"""

from __future__ import annotations

import abc
import logging
import pickle
import signal
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Generic, TypeVar

from cobre_comm.errors import WorkerError
from cobre_comm.launching.interrupt import outcome_of
from cobre_comm.launching.replies import Done, Failed, ProgressReport, exit_code_in
from cobre_comm.processes.attempt import Attempt
from cobre_comm.processes.endings import Ending, describe_loss, exit_status, ranks_alike
from cobre_comm.processes.job import Job
from cobre_comm.processes.loop import NEVER
from cobre_comm.processes.rank import Rank
from cobre_comm.processes.restarts import AttemptEnding

INTERRUPT_S = 1.0  # from the launcher's Ctrl-C, passed on, to SIGTERM
LOOK_S = 0.1  # a child that a rank has forked keeps the pipe open when the rank dies

_logger = logging.getLogger("cobre_comm")

OnProgress = Callable[[int, Any], None]


def warn(line: str) -> None:
    """Tell the user of something in a line, by the logger of the package."""
    _logger.warning("%s", line)


class FunctionRank(Rank):
    """A rank that calls the function."""

    last_message: Done | Failed | None = None  # the outcome of the call

    def take(self, data: bytes) -> ProgressReport | None:
        """Take one message; return a report of progress."""
        message, error = outcome_of(partial(pickle.loads, data))
        if error is not None:
            message = Failed.of(error)
        if isinstance(message, ProgressReport):
            return message
        if not self._notes(message):
            self.last_message = message
            self._report = message.report if isinstance(message, Failed) else None
            self._ends(exit_code_in(message))
        return None

    def _ends(self, code: int) -> None:
        """Note that the call has ended, though the process may run for a moment."""
        self.ending = Ending(self.rank, code, time.monotonic(), self._report, self.aborts)

    @abc.abstractmethod
    def known_code(self) -> int | None:
        """Return the exit code for the user; None if it is lost."""

    def error(self, ranks: Iterable[int] = ()) -> WorkerError:
        """Return the ``WorkerError`` of this rank; ``ranks`` are those with the same mistake."""
        if isinstance(self.last_message, Failed):
            return self.last_message.error(self.rank, ranks)
        return WorkerError(self.rank, self.known_code())


RankType = TypeVar("RankType", bound=FunctionRank)


class FunctionAttempt(abc.ABC, Generic[RankType]):
    """One attempt: all ranks call the function once."""

    def __init__(self, job: Job, on_progress: OnProgress | None) -> None:
        self._job = job
        self._on_progress = on_progress
        self._attempt = Attempt(job, warn, INTERRUPT_S)
        self._why_final = ""  # why no further attempt is wanted
        self.ranks: list[RankType] = []
        self.failure: WorkerError | None = None  # the first one, once all ranks have ended
        self.lost: dict[int, WorkerError] = {}  # by rank, while the others continued

    @property
    def done(self) -> dict[int, Done]:
        """By rank, the last message of those that have returned."""
        said = {rank.rank: rank.last_message for rank in self.ranks}
        return {rank: message for rank, message in said.items() if isinstance(message, Done)}

    def run(self) -> AttemptEnding:
        """Start the ranks, and wait until all have ended; none is left."""
        try:
            try:
                self._start_and_wait()
            except KeyboardInterrupt:
                self._interrupt()
                raise
            return self._judge()
        finally:
            self._on_progress = None
            self._leave_nothing()

    def _start_and_wait(self) -> None:
        self._start()
        self._attempt.until_all_ended(self._step)

    @abc.abstractmethod
    def _start(self) -> None:
        """Start the ranks."""

    def _hear(self, rank: RankType, data: bytes) -> None:
        """Take a message of a rank; a report of progress goes to the program."""
        progress = rank.take(data)
        if self._attempt.escalation.ended_by_us != NEVER:
            self._on_progress = None
        if progress is not None and self._on_progress is not None:
            self._on_progress(rank.rank, progress.payload)

    def _step(self, until: float) -> None:
        """Hear ranks until a time at most, and look which have ended."""
        self._listen(min(until, time.monotonic() + LOOK_S))
        self._attempt.look()

    @abc.abstractmethod
    def _listen(self, until: float) -> None:
        """Hear ranks until a time at most."""

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

    @abc.abstractmethod
    def _leave_nothing(self) -> None:
        """Let go of the ranks; end those that still run."""
