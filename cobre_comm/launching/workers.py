"""The parent of ``launch``: start the workers, listen to them, find the first failure."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing import connection as connections
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from cobre_comm.errors import WorkerError
from cobre_comm.launching.messages import Done, Failed, Progress, receive
from cobre_comm.launching.worker import worker_main
from cobre_comm.processes import endings
from cobre_comm.processes.environment import rank_environment, replaced_environ
from cobre_comm.processes.guardian import Guardian, kill_group, remove_names
from cobre_comm.processes.job import Job

INTERRUPT_S = 1.0  # from the parent's Ctrl-C, passed on, to SIGTERM
EXIT_S = 10.0  # from a worker's value to the end of its process
LOOK_S = 0.1  # a child that a worker forked keeps the worker's pipe open when it dies
_environ_lock = threading.Lock()  # os.environ is one for all threads that launch


class Worker:
    """One rank of ``launch``, as the parent sees it."""

    def __init__(self, rank: int, process: SpawnProcess, connection: Connection) -> None:
        assert process.pid is not None
        self.rank = rank
        self.pid = process.pid
        self.process = process
        self.connection = connection
        self.outcome: Done | Failed | None = None
        self.end: endings.End | None = None

    def take(self) -> Progress | None:
        """Take one message, or notice the end; return a report of progress."""
        try:
            message = receive(self.connection)
        except (EOFError, OSError):
            self._ended()
            return None
        except Exception as error:  # unpickling runs foreign code
            message = Failed.of(error, 1)
        if isinstance(message, Progress):
            return message
        self.outcome = message
        self._ended()
        return None

    def look(self) -> None:
        """Notice the end of the process itself, after all that it said has been taken."""
        if self.end is None and self.process.exitcode is not None and not self.connection.poll():
            self._ended()

    def _ended(self) -> None:
        """Settle how this rank ended: by its own report, else by its exit code."""
        outcome, secondary = self.outcome, False
        if isinstance(outcome, Done):
            code = 0
        elif isinstance(outcome, Failed):
            code, secondary = outcome.exit_code, endings.tells_of_lost_peer(outcome.description)
        else:
            self.process.join(EXIT_S)
            code = self.process.exitcode or 0
        self.end = endings.End(self.rank, code, time.monotonic(), secondary)

    @property
    def has_failed(self) -> bool:
        """Whether it ended without returning."""
        return self.end is not None and not isinstance(self.outcome, Done)

    def signal(self, number: int) -> None:
        """Send a signal to its process group, if it may still run."""
        if self.process.exitcode is None:
            kill_group(self.pid, number)


class Workers:
    """All ranks of one ``launch``; a context that leaves no process behind.

    Parameters
    ----------
    job : Job
        What is started.
    fn, args
        What each worker calls.
    on_progress : callable or None
        Called with (rank, payload).
    """

    def __init__(
        self,
        job: Job,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        on_progress: Callable[[int, Any], None] | None,
    ) -> None:
        self._job = job
        self._call = fn, args
        self._on_progress = on_progress
        self._guardian = Guardian(job.shm_name)
        self.all: list[Worker] = []

    def start(self) -> None:
        """Start the workers, from the thread that will wait for them."""
        context = multiprocessing.get_context("spawn")
        chosen = multiprocessing.get_start_method(allow_none=True)
        try:
            self._start_all(context)
        finally:
            if chosen is None:  # starting a process makes Python's default the program's choice
                multiprocessing.set_start_method(None, force=True)

    def _start_all(self, context: SpawnContext) -> None:
        for rank in self._job.ranks:
            ours, theirs = context.Pipe(duplex=False)
            wants_progress = self._on_progress is not None
            process = context.Process(
                target=worker_main,
                args=(os.getpid(), rank, theirs, wants_progress, *self._call),
                name=f"rank {rank}",
            )
            environment = rank_environment(self._job, rank, os.environ)
            try:
                with _environ_lock, replaced_environ(environment):
                    process.start()
            finally:
                theirs.close()  # else the end of the worker would not end the pipe
                if process.pid is not None:
                    self.all.append(Worker(rank, process, ours))
                    self._guardian.watch(process.pid)
                else:
                    ours.close()

    def wait(self) -> None:
        """Listen until every worker has ended, or one has failed and the others have had their say.

        Raises
        ------
        WorkerError
            For the first failure.
        """
        deadline = float("inf")
        while running := [w for w in self.all if w.end is None]:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                break
            self._listen(running, min(left_s, LOOK_S))
            if deadline == float("inf") and any(w.has_failed for w in running):
                deadline = time.monotonic() + endings.LAST_WORDS_S
        self._raise_first_failure()

    def _listen(self, running: list[Worker], limit_s: float) -> None:
        by_connection = {w.connection: w for w in running}
        ready = connections.wait(list(by_connection), limit_s)
        for connection in ready:
            worker = by_connection[connection]  # type: ignore[index]  # we gave only connections
            message = worker.take()
            if message is not None and self._on_progress is not None:
                self._on_progress(worker.rank, message.payload)
        if not ready:
            for worker in running:
                worker.look()

    def _raise_first_failure(self) -> None:
        failed = {w.rank: w for w in self.all if w.has_failed}
        ends = [w.end for w in failed.values() if w.end is not None]
        # A worker that exited with 0 and no value has failed, but says less than any other.
        first = endings.first_failure(ends) or next(iter(ends), None)
        if first is None:
            return
        outcome = failed[first.rank].outcome
        inner = outcome.exception() if isinstance(outcome, Failed) else None
        raise WorkerError(first.rank, first.code, inner) from inner

    def interrupt(self) -> None:
        """Pass a Ctrl-C on, and give the workers a moment for their ``finally`` blocks."""
        self._signal(signal.SIGINT)
        self._await_exits(INTERRUPT_S)

    def close(self) -> None:
        """End what still runs, reap all, remove names."""
        went_well = all(isinstance(w.outcome, Done) for w in self.all)
        try:
            if self._await_exits(EXIT_S if went_well else 0.0):
                self._signal(signal.SIGTERM)
                self._await_exits(endings.TERMINATE_S)
        finally:
            self._signal(signal.SIGKILL)
            for worker in self.all:
                self._guardian.forget(worker.pid)
                worker.process.join()
                worker.process.close()
                worker.connection.close()
            remove_names(self._job.shm_name)
            self._guardian.end()

    def _signal(self, number: int) -> None:
        for worker in self.all:
            worker.signal(number)

    def _await_exits(self, limit_s: float) -> bool:
        """Wait for all processes to end; return whether some have not."""
        deadline = time.monotonic() + limit_s
        for worker in self.all:
            worker.process.join(max(0.0, deadline - time.monotonic()))
        return any(worker.process.exitcode is None for worker in self.all)
