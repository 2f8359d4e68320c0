"""Many tasks in one thread: each is a generator that yields the condition it waits for.

A task reads like blocking code (``yield from receive(...)``), but no task can delay another. An
exception that leaves a task ends :meth:`TaskLoop.run`. Therefore a task that serves an
unauthenticated peer catches its own errors.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import selectors
import socket
from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar

from cobre_comm.system.running_time import TICK_S, running_s

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE
NEVER = math.inf

T = TypeVar("T")


class Wait(NamedTuple):
    """What a task waits for: a socket, a moment, or whichever of the two is first."""

    sock: socket.socket | None
    events: int = 0
    until: float = NEVER  # by running_s(); after it the task gets a TimeoutError
    last: bool = False  # whether other ready tasks are resumed before this one


Task: TypeAlias = Generator[Wait, None, T]


class ClosedByPeer(ConnectionError):
    """The other end has closed the connection."""


class TaskLoop:
    """Resumes each task when its condition holds."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._waiting: dict[Task[None], Wait] = {}
        self._earliest = NEVER  # no wait has an earlier ``until``

    def start(self, task: Task[None]) -> None:
        """Run a task up to its first wait, and from then on in :meth:`run`."""
        self._resume(task)

    def cancel(self, task: Task[None]) -> None:
        """End a task where it waits; its ``finally`` clauses run."""
        self._forget(task)
        task.close()

    def run(self, done: Callable[[], bool], until: float) -> bool:
        """Serve all tasks until ``done()``; return False if the time ``until`` comes first."""
        while not done():
            now = running_s()
            if now >= until:
                return False
            if now >= self._earliest:
                self._expire(now)
                continue
            limit = min(until, self._earliest, now + TICK_S) - now
            ready = [key.data for key, _ in self._selector.select(limit)]
            for task in sorted(ready, key=lambda one: self._waiting[one].last):
                if task in self._waiting:  # unless an earlier task has just cancelled it
                    self._forget(task)
                    self._resume(task)
        return True

    def close(self) -> None:
        """Cancel all tasks that still wait."""
        for task in list(self._waiting):
            self.cancel(task)
        self._selector.close()

    def _resume(self, task: Task[None], error: BaseException | None = None) -> None:
        try:
            wait = next(task) if error is None else task.throw(error)
        except StopIteration:
            return
        if wait.sock is not None:
            self._selector.register(wait.sock, wait.events, task)
        self._waiting[task] = wait
        self._earliest = min(self._earliest, wait.until)

    def _forget(self, task: Task[None]) -> None:
        wait = self._waiting.pop(task, None)
        if wait is not None and wait.sock is not None:
            self._selector.unregister(wait.sock)

    def _expire(self, now: float) -> None:
        expired = [one for one, wait in self._waiting.items() if wait.until <= now]
        self._earliest = NEVER
        for task in expired:
            if task in self._waiting:
                self._forget(task)
                self._resume(task, TimeoutError("no answer"))
        self._earliest = min((wait.until for wait in self._waiting.values()), default=NEVER)


def receive(sock: socket.socket, count: int, until: float = NEVER) -> Task[bytes]:
    """Receive exactly ``count`` bytes; bytes behind these stay in the socket."""
    data = bytearray()
    while len(data) < count:
        try:
            piece = sock.recv(count - len(data))
        except BlockingIOError:
            yield Wait(sock, READ, until)
            continue
        if not piece:
            raise ClosedByPeer("the connection was closed")
        data += piece
    return bytes(data)


def send(sock: socket.socket, data: bytes, until: float = NEVER) -> Task[None]:
    """Send all of the data."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[sock.send(rest) :]
        except BlockingIOError:
            yield Wait(sock, WRITE, until)


def connect(sock: socket.socket, sockaddr: tuple[Any, ...], until: float) -> Task[None]:
    """Connect a non-blocking socket."""
    code = sock.connect_ex(sockaddr)
    if code == errno.EINPROGRESS:
        yield Wait(sock, WRITE, until)
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, os.strerror(code))
    if sock.getsockname() == sock.getpeername():
        # If no rank listens at the port, the system may give this very port to the socket. Then the
        # socket is connected to itself.
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))


def pause(seconds: float) -> Task[None]:
    """Let other tasks run for a while."""
    with contextlib.suppress(TimeoutError):
        yield Wait(None, until=running_s() + seconds)
