"""A link between two launchers of a job on several machines: short messages, as JSON."""

from __future__ import annotations

import contextlib
import json
import socket
from typing import Any

from cobre_comm.reports import frames

LONGEST_BYTES = 2**16
GONE_MS = 90_000  # as keepalive has it; without this, a message that is under way has 15 minutes
_READ_BYTES = 2**12


class Link:
    """One end of a link, by a socket that is connected, proven and not blocking."""

    def __init__(self, sock: socket.socket) -> None:
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE_MS)
        self._socket = sock
        self._buffer = frames.Buffer()
        self.is_lost = False  # whether the other launcher has ended, or cannot be reached

    def fileno(self) -> int:
        """Return the descriptor that is readable when a message has arrived."""
        return self._socket.fileno()

    def send(self, **message: Any) -> None:
        """Send a message, which fits into the buffer of any socket."""
        data = json.dumps(message).encode()
        with contextlib.suppress(OSError):  # if the link is lost, the next read sees that
            self._socket.sendall(frames.header(data) + data)

    def take(self) -> list[dict[str, Any]]:
        """Return the messages that have arrived."""
        try:
            while data := self._socket.recv(_READ_BYTES):
                self._buffer.feed(data)
                if self._buffer.missing > LONGEST_BYTES:
                    break
            self.is_lost = True
        except BlockingIOError:
            pass
        except OSError:
            self.is_lost = True
        return [json.loads(message) for message in self._buffer.take()]

    def close(self) -> None:
        """Close this end."""
        self._socket.close()
