"""The launcher's side of ``launch``: start the workers, listen to them, find the first failure."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from cobre_comm.common.closing import Closing
from cobre_comm.errors import WorkerError
from cobre_comm.launching.interrupt import outcome_of
from cobre_comm.launching.messages import Done, Failed, Progress
from cobre_comm.launching.order import Order, worker_command
from cobre_comm.processes.endings import (
    Ending,
    exit_status,
    first_failure,
    ranks_alike,
)
from cobre_comm.processes.environment import rank_environment
from cobre_comm.processes.escalation import TERMINATE_S, Escalation
from cobre_comm.processes.group import Group
from cobre_comm.processes.job import Job
from cobre_comm.processes.job_control import JobControl
from cobre_comm.processes.loop import NEVER, Loop, Outbox
from cobre_comm.processes.rank import RankProcess, Standard
from cobre_comm.processes.restarts import Outcome, died_at_once, killed_by_others

INTERRUPT_S = 1.0  # from the launcher's Ctrl-C, passed on, to SIGTERM
EXIT_S = 10.0  # from a worker's value to the end of its process
LOOK_S = 0.1  # a child that a worker forked keeps the worker's pipe open when it dies

_logger = logging.getLogger("cobre_comm")

OnProgress = Callable[[int, Any], None]


class Worker(RankProcess):
    """One rank of ``launch``.

    Attributes
    ----------
    outcome : Done, Failed or None
        Its last message.
    """

    def __init__(self, job: Job, rank: int, order: Order, loop: Loop) -> None:
        self.outcome: Done | Failed | None = None
        self._outbox = Outbox(loop)
        environment = rank_environment(job, rank, os.environ)
        standard = Standard(stdin=self._outbox.reader, others=order.descriptors)
        try:
            super().__init__(rank, worker_command(), environment, standard)
        except BaseException:
            self._outbox.close()
            raise
        self._outbox.send(order.message)

    def take(self, data: bytes) -> Progress | None:
        """Take one message; return a report of progress."""
        message, error = outcome_of(partial(pickle.loads, data))
        if error is not None:
            message = Failed.of(error)
        if isinstance(message, Progress):
            return message
        if self._notes(message):
            return None
        self.outcome = message
        report = message.report if isinstance(message, Failed) else None
        code = 0 if isinstance(message, Done) else (report.exit_code if report else 0) or 1
        self.ending = Ending(self.rank, code, time.monotonic(), report, self.aborts)
        return None

    def look(self) -> None:
        """Note whether it has ended; an exit with 0 and without a value is a failure too."""
        super().look()
        if self.ending is not None and self.outcome is None and self.ending.code == 0:
            self.ending = replace(self.ending, code=1)

    def error(self, ranks: Iterable[int] = ()) -> WorkerError:
        """Return the ``WorkerError`` of this worker; ``ranks`` are those with the same mistake."""
        if isinstance(self.outcome, Failed):
            inner = self.outcome.exception()
            error = WorkerError(self.rank, self.outcome.report.exit_code, inner, ranks)
            error.__cause__ = inner
            return error
        code = self.exit_code()
        return WorkerError(self.rank, None if self.is_code_taken else code)

    def reap(self) -> None:
        """Let go of the ended process, and of its pipes."""
        self._outbox.close()
        super().reap()


class Workers(Closing):
    """All ranks of one ``launch``; a context that leaves no process behind.

    Parameters
    ----------
    job : Job
        The job.
    order : Order
        The order of each worker.
    on_progress : callable or None
        Called with (rank, payload).

    Attributes
    ----------
    failure : WorkerError or None
        The first failure, which :meth:`wait` has raised.
    lost : dict of int to WorkerError
        By rank, the workers that are lost, where the others go on.
    """

    def __init__(self, job: Job, order: Order, on_progress: OnProgress | None) -> None:
        self._job = job
        self._order = order
        self._on_progress = on_progress
        self._group = Group(job.shm_name, Escalation(survive=job.survive))
        self.all: list[Worker] = []
        self._job_control = JobControl(self.all)
        self.failure: WorkerError | None = None
        self.lost: dict[int, WorkerError] = {}
        self._is_asked_to_stop = False
        self._began = time.monotonic()

    def start(self) -> None:
        """Start the workers, from the thread that will wait for them.

        They inherit a mask that keeps a Ctrl-C waiting until they can report it: an interpreter
        that is interrupted while it starts writes a traceback.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for rank in self._job.ranks:
                worker = Worker(self._job, rank, self._order, self._group.loop)
                self.all.append(worker)
                self._group.add(worker, partial(self._hear, worker))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _hear(self, worker: Worker, data: bytes) -> None:
        progress = worker.take(data)
        if progress is not None and self._on_progress is not None:
            self._on_progress(worker.rank, progress.payload)

    def wait(self) -> None:
        """Take messages until every worker has ended, or until the others must end after a failure.

        Raises
        ------
        WorkerError
            For the first failure.
        """
        escalation = self._group.escalation
        while self._group.running:
            now = time.monotonic()
            if escalation.due(now):
                break
            self._group.loop.step(min(escalation.next_at, now + LOOK_S))
            self._group.look()
            if self._job.survive and escalation.began == NEVER:
                self._note_losses()
        endings = self._group.endings
        first = first_failure(self._group.decisive)
        if first is not None:
            failed = next(worker for worker in self.all if worker.rank == first.rank)
            self.failure = failed.error(ranks_alike(endings, first))
            raise self.failure

    def _note_losses(self) -> None:
        """Note the workers that are lost, and tell of each once, unless no other one is left."""
        lost = [
            worker for worker in self.all if worker.ending is not None and worker.ending.is_loss
        ]
        if len(lost) == len(self.all):
            return
        for worker in lost:
            if worker.rank not in self.lost:
                self.lost[worker.rank] = error = worker.error()
                said = str(error).partition("\n")[0]
                _logger.warning("%s; the other ranks go on", said)

    @property
    def done(self) -> dict[int, tuple[int, Done]]:
        """By rank, process id and last message of the workers that have returned."""
        return {
            worker.rank: (worker.pid, worker.outcome)
            for worker in self.all
            if isinstance(worker.outcome, Done)
        }

    @property
    def outcome(self) -> Outcome:
        """How these workers have ended, after a failure."""
        return Outcome(
            0 if self.failure is None else exit_status(self.failure.exit_code or 1),
            has_failed=self.failure is not None,
            at_once=died_at_once(self.all, time.monotonic() - self._began),
            killed=killed_by_others(self.all, self._group.escalation.ended_by_us),
            why_final="it was asked to end" if self._is_asked_to_stop else "",
        )

    def ask_to_stop(self, number: int) -> None:
        """Pass on a signal by which the program asks all workers to stop."""
        self._is_asked_to_stop = True
        self.signal(number)

    def interrupt(self) -> None:
        """Pass a Ctrl-C on, and give the workers a moment for their ``finally`` blocks."""
        self.signal(signal.SIGINT, group=True)
        self._group.await_exits(time.monotonic() + INTERRUPT_S)

    def close(self) -> None:
        """End the workers that still run, reap all, remove names in shared memory."""
        kept = [worker for worker in self.all if worker.rank not in self.lost]
        went_well = all(isinstance(worker.outcome, Done) for worker in kept)
        self._on_progress = None
        try:
            if not self._group.await_exits(time.monotonic() + (EXIT_S if went_well else 0.0)):
                self.signal(signal.SIGTERM, group=True)
                self._group.await_exits(time.monotonic() + TERMINATE_S)
        finally:
            try:
                self._group.end_all(self._step)
            finally:
                self._job_control.close()
                self._group.close()

    def _step(self, until: float) -> bool:
        self._group.loop.step(until)
        return False

    def signal(self, number: int, *, group: bool = False) -> None:
        """Send a signal to all workers, or to their process groups."""
        for worker in self.all:
            worker.signal(number, group=group)
