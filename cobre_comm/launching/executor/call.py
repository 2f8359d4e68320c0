"""The launcher's side of ``launch(executor=...)``: invite workers, hear them, let go of them."""

from __future__ import annotations

import contextlib
import pickle
import queue
import secrets
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection
from typing import Any

from cobre_comm.common.closing import Closing
from cobre_comm.errors import WorkerError
from cobre_comm.launching.executor.guest import run_rank
from cobre_comm.launching.executor.hosts import LOOPBACK, submitters
from cobre_comm.launching.executor.invitation import Go, Hello, Invitation, accept, hang_up, receive
from cobre_comm.launching.interrupt import outcome_of
from cobre_comm.launching.messages import Done, Failed, Progress
from cobre_comm.processes.endings import Ending, first_failure, ranks_alike
from cobre_comm.processes.environment import CONNECT_TIMEOUT_MS

COME_S = 60.0  # from the order to the last worker's first word
SAY_S = 3.0  # from the first failure to the last rank's word
LOOK_S = 0.1

OnProgress = Callable[[int, Any], None]


def call_on_executor(
    executor: Any,
    size: int,
    call: tuple[Callable[..., Any], tuple[Any, ...]],
    timeout_s: float | None,
    on_progress: OnProgress | None,
) -> list[tuple[int, Done]]:
    """Call a function on ranks in the workers of an executor; return pid and outcome of each.

    Raises
    ------
    WorkerError
        For the first rank that failed.
    RuntimeError
        If the executor cannot run a task, or if not all workers come.
    TypeError
        If two ranks have come in one process.
    """
    submits, here = submitters(executor, size)
    with Guests(here, size, on_progress) as guests:
        guests.invite(submits, call)
        guests.meet(timeout_s)
        guests.wait()
        return guests.results()


class Guests(Closing):
    """The workers of one launch, by rank."""

    def __init__(self, here: str, size: int, on_progress: OnProgress | None) -> None:
        self._size = size
        self._on_progress = on_progress
        self._secret = secrets.token_bytes(32)
        self._heard: queue.SimpleQueue[tuple[Hello, Connection, str, Any]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._open: list[Connection] = []
        self._closed = False
        self._connections: dict[int, Connection] = {}
        self._hellos: dict[int, Hello] = {}
        self._outcomes: dict[int, Done | Failed | None] = {}  # None: gone without a word
        self._endings: list[Ending] = []
        self._address_of_first = LOOPBACK
        self._futures: list[Any] = []
        self._here = here
        self._listener = socket.create_server((here, 0), backlog=size + 16)
        threading.Thread(target=self._accept, daemon=True, name="cobre-guests").start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                sock, address = self._listener.accept()
                threading.Thread(target=self._hear, args=(sock, address[0]), daemon=True).start()

    def _hear(self, sock: socket.socket, address: str) -> None:
        """Queue the messages of one authenticated worker, then None when it has gone."""
        with (
            contextlib.suppress(AuthenticationError, EOFError, OSError),
            accept(sock, self._secret) as connection,
        ):
            with self._lock:
                if self._closed:
                    return
                self._open.append(connection)
            hello = receive(connection)
            self._heard.put((hello, connection, address, hello))
            with contextlib.suppress(EOFError, OSError):
                while True:
                    data = connection.recv_bytes()
                    message, error = outcome_of(partial(pickle.loads, data))
                    said = message if error is None else Failed.of(error)
                    self._heard.put((hello, connection, address, said))
            self._heard.put((hello, connection, address, None))

    def invite(
        self,
        submits: list[Callable[..., Any]],
        call: tuple[Callable[..., Any], tuple[Any, ...]],
    ) -> None:
        """Submit a task for each rank."""
        host, port = self._here, self._listener.getsockname()[1]
        wants_progress = self._on_progress is not None
        for rank, submit in enumerate(submits):
            invitation = Invitation(host, port, self._secret, rank, wants_progress)
            self._futures.append(submit(run_rank, invitation, *call))

    def meet(self, timeout_s: float | None) -> None:
        """Wait until all workers have come; tell them the address at which their ranks meet."""
        deadline = time.monotonic() + COME_S
        while len(self._hellos) < self._size:
            self._step()
            self._raise_what_a_future_knows()
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"{len(self._hellos)} of {self._size} workers of the executor have come within "
                    f"{COME_S:.0f} s: the others are busy, or cannot reach "
                    f"{self._here}; every rank needs a free worker at the same time"
                )
        machines = {(hello.machine, hello.pid) for hello in self._hellos.values()}
        if len(machines) < self._size:
            raise TypeError("two ranks have come in one process; a rank needs a worker of its own")
        job = {
            "COBRE_TCP_SIZE": str(self._size),
            "COBRE_TCP_COORDINATOR": self._address_of_first,
            "COBRE_TCP_PORT": str(self._hellos[0].port),
            "COBRE_TCP_BIND_ADDR": "0.0.0.0",
            "COBRE_TCP_TOKEN": secrets.token_hex(32),
            "COBRE_TCP_CONNECT_TIMEOUT_MS": CONNECT_TIMEOUT_MS,
        }
        if timeout_s is not None:
            job["COBRE_TCP_TIMEOUT_SECS"] = f"{timeout_s:.17g}"
        for rank, connection in self._connections.items():
            with contextlib.suppress(OSError):  # gone; its thread tells
                connection.send_bytes(pickle.dumps(Go(job | {"COBRE_TCP_RANK": str(rank)})))

    def wait(self) -> None:
        """Take messages until all ranks have ended, or for ``SAY_S`` after the first failure.

        Raises
        ------
        WorkerError
            For the first failure.
        """
        last_word = float("inf")
        while len(self._outcomes) < self._size and time.monotonic() < last_word:
            self._step()
            if self._endings and last_word == float("inf"):
                last_word = time.monotonic() + SAY_S
        first = first_failure(self._endings)
        if first is None:
            return
        failed = self._outcomes[first.rank]
        if not isinstance(failed, Failed):
            raise WorkerError(first.rank, first.code)
        inner = failed.exception()
        ranks = ranks_alike(self._endings, first)
        raise WorkerError(first.rank, failed.report.exit_code, inner, ranks) from inner

    def results(self) -> list[tuple[int, Done]]:
        """Return pid and outcome by rank."""
        ranks = [(self._hellos[rank].pid, self._outcomes[rank]) for rank in range(self._size)]
        return [(pid, outcome) for pid, outcome in ranks if isinstance(outcome, Done)]

    def _step(self) -> None:
        """Take one message, if one comes soon."""
        try:
            hello, connection, address, message = self._heard.get(timeout=LOOK_S)
        except queue.Empty:
            return
        rank = hello.rank
        if isinstance(message, Hello):
            self._hellos[rank], self._connections[rank] = hello, connection
            if rank == 0:
                self._address_of_first = address
        elif isinstance(message, Progress):
            if self._on_progress is not None:
                self._on_progress(rank, message.payload)
        elif rank not in self._outcomes:
            self._outcomes[rank] = message
            if not isinstance(message, Done):
                report = message.report if message is not None else None
                code = (report.exit_code if report is not None else 0) or 1
                self._endings.append(Ending(rank, code, time.monotonic(), report))

    def _raise_what_a_future_knows(self) -> None:
        """Raise ``RuntimeError`` if a task could not run: not picklable, or the pool is broken."""
        for rank, future in enumerate(self._futures):
            if future.done() and rank not in self._hellos and not future.cancelled():
                error = future.exception()
                if error is not None:
                    raise RuntimeError(
                        f"the executor could not run rank {rank}: {error}"
                    ) from error

    def close(self) -> None:
        """Interrupt the ranks that still run, and let go of the workers."""
        for future in self._futures:
            future.cancel()  # one that has not begun
        for connection in self._connections.values():
            with contextlib.suppress(OSError):
                connection.send_bytes(pickle.dumps(None))
        deadline = time.monotonic() + SAY_S
        self._on_progress = None
        while self._connections.keys() - self._outcomes.keys() and time.monotonic() < deadline:
            self._step()
        with contextlib.suppress(OSError):  # not on Linux, where it wakes the thread that accepts
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            self._closed = True
            for connection in self._open:
                hang_up(connection, socket.SHUT_RDWR)
