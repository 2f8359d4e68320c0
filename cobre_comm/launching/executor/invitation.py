"""The first messages of a launcher and its workers, and the connection that carries them."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any, NamedTuple

CONNECT_S = 30.0


class Invitation(NamedTuple):
    """The address of the launcher, and the rank that a worker shall become."""

    host: str
    port: int
    # Both ends prove that they know the secret before anything is unpickled. The task holds it.
    secret: bytes
    rank: int
    wants_progress: bool  # whether the launcher wants reports of progress


class Hello(NamedTuple):
    """The first message of a worker: its rank, its process, and a port that is free there."""

    rank: int
    process: bytes  # its identity, because containers may share a host name and process ids
    port: int


class Go(NamedTuple):
    """The answer once all workers have arrived: the variables by which their ranks meet."""

    variables: dict[str, str]


class GuestConnection(Connection):
    """The connection of a launcher and a worker: one thread reads and closes it, another may send.

    The descriptor's number may belong to another file at once, so it is not closed amid a message.
    """

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock.detach())
        self._lock = threading.RLock()  # not Lock: a signal handler may interrupt its thread here

    def send_bytes(self, buf: Any, offset: int = 0, size: int | None = None) -> None:
        """Send a message; ``OSError`` once the connection is closed."""
        with self._lock:
            super().send_bytes(buf, offset, size)

    def hang_up(self, how: int) -> None:
        """Shut the connection down: the thread that reads sees its end, and closes it."""
        with (
            self._lock,
            contextlib.suppress(OSError),  # closed by now, or reset by the other end
            socket.socket(fileno=os.dup(self.fileno())) as sock,
        ):
            sock.shutdown(how)

    def close(self) -> None:
        """Close the connection, once nothing is being sent."""
        with self._lock:
            super().close()


def connect(invitation: Invitation) -> GuestConnection:
    """Connect to the launcher; return the authenticated connection.

    If the launcher closes its listener while a connection is on its way, this end may be the only
    one. Then nothing ever arrives, not even an end of file, so the worker gives up after CONNECT_S.
    """
    address = (invitation.host, invitation.port)
    with socket.create_connection(address, timeout=CONNECT_S) as sock:
        sock.settimeout(None)
        connection = GuestConnection(sock)
    if not connection.poll(CONNECT_S):
        connection.close()
        raise TimeoutError(f"the launcher at {address} says nothing: has it given up?")
    answer_challenge(connection, invitation.secret)
    deliver_challenge(connection, invitation.secret)
    return connection


def admit(connection: Connection, secret: bytes) -> None:
    """Shake hands at the launcher's end of a connection; raises unless the peer has the secret."""
    deliver_challenge(connection, secret)
    answer_challenge(connection, secret)
