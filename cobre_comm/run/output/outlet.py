"""The launcher's stdout or stderr, written to without being blocked by a slow reader."""

from __future__ import annotations

import os
import select
import stat
from collections import deque

from cobre_comm.system.streams import STDERR, STDOUT

FULL_BYTES = 2**20  # if so much is queued, no output of ranks is read until half of it is written
# If select.poll says that a pipe or terminal is writable, it takes this much without blocking
# (PIPE_BUF on Linux). A file takes any number of bytes.
ATOMIC_BYTES = 4096
FILE_BYTES = 2**20


class Outlet:
    """A file descriptor, with a queue of bytes to write to it."""

    def __init__(self, fd: int) -> None:
        self.fd = fd  # in blocking mode, because other processes may share it
        self.is_terminal = os.isatty(fd)
        self.is_broken = False  # whether the reader has gone; then all bytes are dropped
        self.problem = ""  # a sentence, if bytes could not be written, as on a full disk; else ""
        self._pending: deque[bytes] = deque()
        self._pending_bytes = 0
        is_file = stat.S_ISREG(os.fstat(fd).st_mode)
        self._limit = FILE_BYTES if is_file else ATOMIC_BYTES

    @property
    def is_full(self) -> bool:
        """Whether no more bytes should be put before the queue is written."""
        return self._pending_bytes >= FULL_BYTES

    @property
    def has_room(self) -> bool:
        """Whether bytes may be put again, after the queue was full."""
        return self._pending_bytes <= FULL_BYTES // 2

    @property
    def is_empty(self) -> bool:
        """Whether the queue is empty."""
        return not self._pending

    def put(self, data: bytes) -> None:
        """Queue some bytes."""
        if data and not self.is_broken and not self.problem:
            self._pending.append(data)
            self._pending_bytes += len(data)

    def write_some(self) -> None:
        """Write as much as does not block; call this when ``poll`` says that ``fd`` is writable."""
        data = self._pending[0]
        try:
            written = os.write(self.fd, memoryview(data)[: self._limit])
        except BlockingIOError:  # another process has made the shared descriptor non-blocking
            return
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                self.is_broken = True
            else:
                name = {STDOUT: "stdout", STDERR: "stderr"}.get(self.fd, f"descriptor {self.fd}")
                self.problem = f"{name} is incomplete: {error.strerror}"
            self.drop()
            return
        self._pending.popleft()
        self._pending_bytes -= written
        if written < len(data):
            # Views keep the cost linear in the length of a long block.
            self._pending.appendleft(memoryview(data)[written:])  # type: ignore[arg-type]

    def drop(self) -> None:
        """Empty the queue without writing it."""
        self._pending.clear()
        self._pending_bytes = 0

    def write_all(self, wait_s: float) -> None:
        """Write everything; give up when the reader has taken nothing for ``wait_s`` seconds."""
        writable = select.poll()
        writable.register(self.fd, select.POLLOUT)
        while self._pending and writable.poll(wait_s * 1000):
            self.write_some()
