"""Ranks of ``launch(executor=...)``: workers are invited, meet, and are released."""

from __future__ import annotations

import contextlib
import pickle
import queue
import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import AuthenticationError
from typing import Any, NamedTuple

from cobre_comm.backends.spec import Rendezvous
from cobre_comm.backends.tcp.foreign import CONNECT_TIMEOUT_MS
from cobre_comm.launching.executor.guest import run_rank
from cobre_comm.launching.executor.hosts import LOOPBACK, Submit, submitters
from cobre_comm.launching.executor.invitation import Go, GuestConnection, Hello, Invitation, admit
from cobre_comm.launching.function import LOOK_S, FunctionAttempt, FunctionRank, OnProgress
from cobre_comm.launching.replies import Done, exit_code_in
from cobre_comm.processes.environment import rendezvous_variables
from cobre_comm.processes.job import Job

COME_S = 60.0  # from the order to the last worker's first message
SAY_S = 3.0  # for a worker that was interrupted to say so


def call_on_executor(
    executor: Any,
    job: Job,
    call: tuple[Callable[..., Any], tuple[Any, ...]],
    on_progress: OnProgress | None,
) -> dict[int, Done]:
    """Call a function on ranks in the workers of an executor; return the last message of each.

    ``RuntimeError`` and ``TypeError`` tell that not all workers come, each in its own process.
    """
    guests = GuestAttempt(job, *submitters(executor, job.size), call, on_progress)
    guests.run()
    if guests.failure is not None:
        raise guests.failure
    return guests.done


class Heard(NamedTuple):
    """A message of a worker; or at first its connection, and nothing when that has ended."""

    rank: int
    data: bytes | None = None
    came: tuple[Hello, GuestConnection, str] | None = None


class Guest(FunctionRank):
    """A rank in a worker. Its process belongs to the executor, and may be on another machine."""

    def __init__(self, rank: int) -> None:
        super().__init__(rank, reports=False)
        self.hello: Hello | None = None
        self._connection: GuestConnection | None = None

    def comes(self, hello: Hello, connection: GuestConnection) -> None:
        """Note the first message of the rank, and the connection that reaches the rank."""
        self.hello, self._connection = hello, connection

    def send(self, message: Go | None) -> None:
        """Send it a message; None interrupts it."""
        if self._connection is not None:
            with contextlib.suppress(OSError):  # it has ended, as its thread reports
                self._connection.send_bytes(pickle.dumps(message))

    def goes(self) -> None:
        """Note that its connection has ended."""
        if self.ending is None:
            self._ends(exit_code_in(None))

    def signal(self, number: int, *, group: bool) -> None:
        """Interrupt it; instead of SIGKILL, wait for it no more."""
        if self.ending is None and number != signal.SIGKILL:
            self.send(None)
        elif self.ending is None:
            self._ends(-number)

    def known_code(self) -> int | None:
        """Return a code for the user; only the executor knows that of the process."""
        return None if self.ending is None else self.ending.code

    def reap(self) -> None:
        """Do nothing: its connection ends with the attempt."""


class GuestAttempt(FunctionAttempt[Guest]):
    """One attempt of ranks in workers: each of ``submits`` submits the task of one rank.

    Workers reach this process at the address ``here``.
    """

    def __init__(
        self,
        job: Job,
        submits: list[Submit],
        here: str,
        call: tuple[Callable[..., Any], tuple[Any, ...]],
        on_progress: OnProgress | None,
    ) -> None:
        super().__init__(job, on_progress)
        self._submits = submits
        self._here = here
        self._call = call
        self._secret = secrets.token_bytes(32)
        self._heard: queue.SimpleQueue[Heard] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._open: list[GuestConnection] = []
        self._is_closed = False
        self._address_of_first = LOOPBACK
        self._futures: list[Any] = []
        self._listener = socket.create_server((here, 0), backlog=job.size + 16)

    def _start(self) -> None:
        """Invite a worker for each rank, and tell all where they meet."""
        threading.Thread(target=self._accept, daemon=True, name="cobre-guests").start()
        port, wants_progress = self._listener.getsockname()[1], self._on_progress is not None
        for rank, submit in enumerate(self._submits):
            self.ranks.append(Guest(rank))
            self._attempt.add(self.ranks[rank])
            invitation = Invitation(self._here, port, self._secret, rank, wants_progress)
            self._futures.append(submit(run_rank, invitation, *self._call))
        first = self._await_all()[0]
        rendezvous = Rendezvous(self._address_of_first, first.port, "0.0.0.0")
        job = replace(self._job, rendezvous=rendezvous)
        for guest in self.ranks:
            variables = rendezvous_variables(job, guest.rank)
            guest.send(Go({**variables, "COBRE_TCP_CONNECT_TIMEOUT_MS": CONNECT_TIMEOUT_MS}))

    def _await_all(self) -> list[Hello]:
        """Wait until all workers have arrived; return their first messages."""
        deadline = time.monotonic() + COME_S
        while len(hellos := [guest.hello for guest in self.ranks if guest.hello]) < self._job.size:
            self._listen(time.monotonic() + LOOK_S)
            self._raise_what_a_future_knows()
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"{len(hellos)} of {self._job.size} workers of the executor have come within "
                    f"{COME_S:.0f} s: the others are busy, or cannot reach "
                    f"{self._here}; every rank needs a free worker at the same time"
                )
        if len({hello.process for hello in hellos}) < self._job.size:
            raise TypeError("two ranks have come in one process; a rank needs a worker of its own")
        return hellos

    def _raise_what_a_future_knows(self) -> None:
        """Raise ``RuntimeError`` if a task could not run: not picklable, or the pool is broken."""
        for guest, future in zip(self.ranks, self._futures, strict=True):
            if future.done() and guest.hello is None and not future.cancelled():
                error = future.exception()
                if error is not None:
                    raise RuntimeError(
                        f"the executor could not run rank {guest.rank}: {error}"
                    ) from error

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                sock, address = self._listener.accept()
                told = sock, address[0]
                threading.Thread(target=self._hear_one, args=told, daemon=True).start()

    def _hear_one(self, sock: socket.socket, address: str) -> None:
        """Queue the messages of one authenticated worker, and at last the end of its connection."""
        with (
            contextlib.suppress(AuthenticationError, EOFError, OSError),
            GuestConnection(sock) as connection,
        ):
            with self._lock:
                if self._is_closed:
                    return
                self._open.append(connection)  # first, because a peer may never say anything
            admit(connection, self._secret)
            hello = connection.recv()
            self._heard.put(Heard(hello.rank, came=(hello, connection, address)))
            with contextlib.suppress(EOFError, OSError):
                while True:
                    self._heard.put(Heard(hello.rank, connection.recv_bytes()))
            self._heard.put(Heard(hello.rank))

    def _listen(self, until: float) -> None:
        """Take one message, if one arrives in time."""
        try:
            heard = self._heard.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            return
        guest = self.ranks[heard.rank]
        if heard.came is not None:
            hello, connection, address = heard.came
            guest.comes(hello, connection)
            if guest.rank == 0:
                self._address_of_first = address
        elif heard.data is None:
            guest.goes()
        elif guest.ending is None:
            self._hear(guest, heard.data)

    def _leave_nothing(self) -> None:
        """Interrupt the ranks that still run, and release the workers."""
        try:
            for future in self._futures:
                future.cancel()  # one that has not begun
            for guest in self.ranks:
                guest.send(None)
            deadline = time.monotonic() + SAY_S
            while self._running() and time.monotonic() < deadline:
                self._listen(time.monotonic() + LOOK_S)
        finally:
            with contextlib.suppress(OSError):  # not on Linux, where it wakes the accepting thread
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            with self._lock:
                self._is_closed = True
                for connection in self._open:
                    connection.hang_up(socket.SHUT_RDWR)
            self._attempt.close()

    def _running(self) -> list[Guest]:
        """Return the ranks that have arrived and not ended."""
        return [guest for guest in self.ranks if guest.hello is not None and guest.ending is None]
