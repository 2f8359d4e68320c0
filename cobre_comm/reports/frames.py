"""Messages over a pipe: first a length, then as many bytes."""

from __future__ import annotations

import os
import struct

_LENGTH = struct.Struct("!Q")
READ_BYTES = 2**20


def header(message: bytes) -> bytes:
    """Return the eight bytes before a message, which contain its length."""
    return _LENGTH.pack(len(message))


def send(fd: int, message: bytes) -> None:
    """Write a message; while the pipe is full, wait for its reader."""
    for part in (header(message), message):
        view = memoryview(part)
        while view:
            view = view[os.write(fd, view) :]


def receive(fd: int) -> bytes | None:
    """Wait for a message; return None at the end of the pipe."""
    buffer = Buffer()
    while buffer.missing:
        data = os.read(fd, min(buffer.missing, READ_BYTES))
        if not data:
            return None
        buffer.feed(data)
    return buffer.take()[0]


class Buffer:
    """Collects the bytes of a pipe, and returns the messages that are complete."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    @property
    def missing(self) -> int:
        """The number of bytes that are missing to complete the next length or message."""
        if len(self._bytes) < _LENGTH.size:
            return _LENGTH.size - len(self._bytes)
        return max(0, self._end - len(self._bytes))

    @property
    def _end(self) -> int:
        length: int = _LENGTH.unpack_from(self._bytes)[0]
        return _LENGTH.size + length

    def feed(self, data: bytes) -> None:
        """Add bytes that have been read."""
        self._bytes += data

    def take(self) -> list[bytes]:
        """Remove and return the messages that are complete."""
        found = []
        while not self.missing:
            end = self._end
            found.append(bytes(memoryview(self._bytes)[_LENGTH.size : end]))
            del self._bytes[:end]
        return found
