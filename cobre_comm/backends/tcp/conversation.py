"""Many conversations in one thread: each is a generator that says what it waits for.

A conversation reads like blocking code (``yield from receive(...)``), and none can hold up another.
What it raises ends :meth:`Loop.run`, so a conversation with a stranger catches its own errors.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import selectors
import socket
import time
from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE
NEVER = math.inf

T = TypeVar("T")


class Wait(NamedTuple):
    """What a conversation waits for: a socket, a moment, or whichever comes first."""

    sock: socket.socket | None
    events: int = 0
    until: float = NEVER  # by time.monotonic(); then TimeoutError is raised in the conversation
    last: bool = False  # to be resumed after all others that are ready


Conversation: TypeAlias = Generator[Wait, None, T]


class Ended(ConnectionError):
    """The other side has closed the connection."""


class Loop:
    """Resumes conversations when what they wait for has come."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._waiting: dict[Conversation[None], Wait] = {}
        self._earliest = NEVER  # no wait ends before; may be too early, never too late

    def start(self, conversation: Conversation[None]) -> None:
        """Run a conversation up to its first wait, and from then on in :meth:`run`."""
        self._resume(conversation)

    def cancel(self, conversation: Conversation[None]) -> None:
        """End a conversation where it stands; its ``finally`` clauses run."""
        self._forget(conversation)
        conversation.close()

    def run(self, done: Callable[[], bool], until: float) -> bool:
        """Serve all conversations until ``done()``; return False if ``until`` came first."""
        while not done():
            now = time.monotonic()
            if now >= until:
                return False
            if now >= self._earliest:
                self._expire(now)
                continue
            limit = min(until, self._earliest) - now
            ready = [
                key.data for key, _ in self._selector.select(None if limit == NEVER else limit)
            ]
            for conversation in sorted(ready, key=lambda one: self._waiting[one].last):
                if conversation in self._waiting:  # an earlier one may have cancelled it
                    self._forget(conversation)
                    self._resume(conversation)
        return True

    def close(self) -> None:
        """Cancel whatever still waits."""
        for conversation in list(self._waiting):
            self.cancel(conversation)
        self._selector.close()

    def _resume(self, conversation: Conversation[None], error: BaseException | None = None) -> None:
        try:
            wait = next(conversation) if error is None else conversation.throw(error)
        except StopIteration:
            return
        if wait.sock is not None:
            self._selector.register(wait.sock, wait.events, conversation)
        self._waiting[conversation] = wait
        self._earliest = min(self._earliest, wait.until)

    def _forget(self, conversation: Conversation[None]) -> None:
        wait = self._waiting.pop(conversation, None)
        if wait is not None and wait.sock is not None:
            self._selector.unregister(wait.sock)

    def _expire(self, now: float) -> None:
        late = [one for one, wait in self._waiting.items() if wait.until <= now]
        self._earliest = NEVER
        for conversation in late:
            if conversation in self._waiting:
                self._forget(conversation)
                self._resume(conversation, TimeoutError("no answer"))
        self._earliest = min((wait.until for wait in self._waiting.values()), default=NEVER)


def receive(sock: socket.socket, count: int, until: float = NEVER) -> Conversation[bytes]:
    """Receive exactly so many bytes, and none of those that follow."""
    data = bytearray()
    while len(data) < count:
        try:
            piece = sock.recv(count - len(data))
        except BlockingIOError:
            yield Wait(sock, READ, until)
            continue
        if not piece:
            raise Ended("the connection was closed")
        data += piece
    return bytes(data)


def send(sock: socket.socket, data: bytes, until: float = NEVER) -> Conversation[None]:
    """Send all of the data."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[sock.send(rest) :]
        except BlockingIOError:
            yield Wait(sock, WRITE, until)


def connect(sock: socket.socket, sockaddr: tuple[Any, ...], until: float) -> Conversation[None]:
    """Connect a non-blocking socket."""
    code = sock.connect_ex(sockaddr)
    if code == errno.EINPROGRESS:
        yield Wait(sock, WRITE, until)
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, os.strerror(code))
    if sock.getsockname() == sock.getpeername():
        # Where nobody listens, a port of the ephemeral range may be given to this very socket.
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))


def pause(seconds: float) -> Conversation[None]:
    """Let others speak for a while."""
    with contextlib.suppress(TimeoutError):
        yield Wait(None, until=time.monotonic() + seconds)
