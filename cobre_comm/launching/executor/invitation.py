"""What a worker of an executor is told, and the connection by which it and the launcher talk."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any, NamedTuple

CONNECT_S = 30.0


class Invitation(NamedTuple):
    """Where the launcher listens, and who is invited.

    Parameters
    ----------
    host, port : str, int
        Of the launcher.
    secret : bytes
        Which both prove before anything is unpickled; it came with the task.
    rank : int
        What the worker becomes.
    wants_progress : bool
        Whether somebody hears reports.
    """

    host: str
    port: int
    secret: bytes
    rank: int
    wants_progress: bool


class Hello(NamedTuple):
    """The first words of a worker: who it is, and a port that is free there."""

    rank: int
    pid: int
    machine: str
    port: int


class Go(NamedTuple):
    """All workers have come: where their ranks meet."""

    variables: dict[str, str]


def connect(invitation: Invitation) -> Connection:
    """Return the worker's end.

    Where the launcher closes its listener while a connection is on its way, the worker's end may be
    the only one: nothing comes by it, not even the end of the other.
    """
    address = (invitation.host, invitation.port)
    with socket.create_connection(address, timeout=CONNECT_S) as sock:
        sock.settimeout(None)
        connection = Connection(sock.detach())
    if not connection.poll(CONNECT_S):
        connection.close()
        raise TimeoutError(f"the launcher at {address} says nothing: has it given up?")
    answer_challenge(connection, invitation.secret)
    deliver_challenge(connection, invitation.secret)
    return connection


def accept(sock: socket.socket, secret: bytes) -> Connection:
    """Return the launcher's end of an accepted connection; raises if it is unauthenticated."""
    connection = Connection(sock.detach())
    deliver_challenge(connection, secret)
    answer_challenge(connection, secret)
    return connection


def receive(connection: Connection) -> Any:
    """Return the next message; ``EOFError`` or ``OSError`` once the other end has gone."""
    return pickle.loads(connection.recv_bytes())


def hang_up(connection: Connection, how: int) -> None:
    """Let the thread that reads from a connection see its end; that thread closes it."""
    with (
        contextlib.suppress(OSError),  # closed by now, or reset by the other end
        socket.socket(fileno=os.dup(connection.fileno())) as sock,
    ):
        sock.shutdown(how)
