"""The launcher's loop over descriptors, and its ends of the pipes to and from each rank."""

from __future__ import annotations

import os
import select
import time
from collections import deque
from collections.abc import Callable

from cobre_comm.reports import frames, report_pipe

NEVER = float("inf")


class LauncherLoop:
    """Waits for many descriptors at once."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._handlers: dict[int, Callable[[], object]] = {}

    def serve(self, fd: int, handler: Callable[[], object], events: int = select.POLLIN) -> None:
        """Call ``handler`` whenever a descriptor is ready, until :meth:`unserve`."""
        self._handlers[fd] = handler
        self._poll.register(fd, events)

    def unserve(self, fd: int) -> None:
        """Stop watching a descriptor; call this before the descriptor is closed."""
        if self._handlers.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def step(self, until: float) -> None:
        """Wait until some descriptor is ready, or until a time, and call the handlers."""
        wait_ms = None if until == NEVER else max(0.0, until - time.monotonic()) * 1000 + 0.5
        for fd, _ in self._poll.poll(wait_ms):
            if fd in self._handlers:  # an earlier handler may have removed it
                self._handlers[fd]()


class Inbox:
    """The launcher's end of a report pipe."""

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()  # the rank inherits the writer
        os.set_blocking(self._reader, False)
        inode = os.fstat(self.writer).st_ino
        # The rank inherits the writer under the same number, and finds it by this variable.
        self.variables = {report_pipe.VARIABLE: f"{self.writer}:{inode}"}
        self._buffer = frames.Buffer()
        self._loop: LauncherLoop | None = None
        self._hear: Callable[[bytes], None] = lambda message: None

    def serve(self, loop: LauncherLoop, hear: Callable[[bytes], None]) -> None:
        """Call ``hear`` with each message that arrives while ``loop`` runs."""
        self._loop, self._hear = loop, hear
        loop.serve(self._reader, self._read)

    def handed_over(self) -> None:
        """Close the launcher's copy of the writer, when the rank has inherited it."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def _read(self) -> bool:
        """Read at most a mebibyte, and pass on whole messages; return whether any byte was read."""
        try:
            data = os.read(self._reader, frames.READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._stop()
        self._buffer.feed(data)
        for message in self._buffer.take():
            self._hear(message)
        return bool(data)

    def read_all(self) -> None:
        """Read the pipe to the end, after the rank has ended."""
        while self._read():
            pass

    def _stop(self) -> None:
        if self._loop is not None:
            self._loop.unserve(self._reader)
            self._loop = None

    def close(self) -> None:
        """Close both ends."""
        self._stop()
        self.handed_over()
        os.close(self._reader)


class Outbox:
    """Messages to a rank, through its stdin; if the rank does not read, nobody has to wait."""

    def __init__(self, loop: LauncherLoop) -> None:
        self.reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._loop = loop
        self._pending: deque[memoryview] = deque()

    def send(self, message: bytes) -> None:
        """Queue a message; the loop writes it."""
        if not self._pending:
            self._loop.serve(self._writer, self._write, select.POLLOUT)
        self._pending += [memoryview(frames.header(message)), memoryview(message)]

    def _write(self) -> None:
        try:
            written = os.write(self._writer, self._pending[0])
        except OSError:  # the rank has ended, and its ending will say so
            self._pending.clear()
        else:
            rest = self._pending.popleft()[written:]
            if rest:
                self._pending.appendleft(rest)
        if not self._pending:
            self._loop.unserve(self._writer)

    def close(self) -> None:
        """Close the pipe, so that a rank that waits for a message sees the end of file."""
        self._loop.unserve(self._writer)
        os.close(self._writer)
