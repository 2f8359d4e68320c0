"""How the ranks of several nodes find each other after their communicator has broken.

Every rank listens at a port of its own from the moment the ranks have met. A rank closes its port
when it ends, when it closes its communicator, and when it has shrunk it. So an open port shows that
its rank may still call shrink, although nothing is read from the port before a shrink. If a machine
refuses a connection to the port, the rank will not call any more. If the machine does not answer,
the rank may be alive there, in another part of a network that has fallen into parts.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Mapping
from typing import NamedTuple

from cobre_comm.backends.tcp.rendezvous.addresses import Endpoint
from cobre_comm.backends.tcp.rendezvous.event_loop import NEVER, READ, Task, Wait, connect, pause
from cobre_comm.backends.tcp.rendezvous.protocol import CONNECT_S
from cobre_comm.backends.tcp.rendezvous.sockets import prepare
from cobre_comm.system.running_time import running_s

# When a machine has vanished, these connections break after 1 + 5 * 1 s. The links of a job take
# longer, but survivors can do nothing else until they know which ranks are left.
KEEPALIVE = {"TCP_KEEPIDLE": 1, "TCP_KEEPALIVE": 1, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 5}
_NO_ANSWER = (
    errno.ETIMEDOUT,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.EHOSTDOWN,
    errno.ENETDOWN,
)
AGAIN_S = 0.01  # from the end of a connection to a port until the next attempt to connect


class Callers(NamedTuple):
    """The ports of the ranks of a communicator."""

    listener: socket.socket  # of this rank
    endpoints: Mapping[int, Endpoint]  # by rank, where the other ranks listen
    key: bytes  # of the handshakes at these ports

    def close(self) -> None:
        """Close this rank's port."""
        with contextlib.suppress(OSError):  # the program has closed this socket itself
            self.listener.close()


class Gone(Exception):
    """Nobody listens any more at the port of a rank."""


class Unreachable(Exception):
    """The machine of a rank does not answer."""


def call(endpoint: Endpoint) -> Task[socket.socket]:
    """Connect to the port of a rank; raise ``Gone`` or ``Unreachable``."""
    until = running_s() + CONNECT_S
    while True:
        sock = socket.socket(endpoint.family, socket.SOCK_STREAM)
        try:
            yield from connect(prepare(sock, KEEPALIVE), endpoint.sockaddr, until)
            return sock
        except BaseException as error:
            sock.close()
            if isinstance(error, ConnectionRefusedError):
                raise Gone from None
            if not isinstance(error, OSError):
                raise
            if running_s() >= until or error.errno in _NO_ANSWER:
                raise Unreachable from None
        # The rank has ended while this rank connected, so the next attempt is refused.
        yield from pause(AGAIN_S)


def watch(endpoint: Endpoint, until: float = NEVER) -> Task[None]:
    """Stay connected to the port of a rank; raise ``Gone`` or ``Unreachable`` if it is lost."""
    while True:
        sock = yield from call(endpoint)
        with contextlib.closing(sock):
            try:
                while (yield from _is_open(sock, until)):
                    pass
            except OSError as error:
                if error.errno in _NO_ANSWER:
                    raise Unreachable from None
                if isinstance(error, TimeoutError):  # without errno: the time is over
                    return
        # Either the port was closed, or the rank has closed only this connection.
        yield from pause(AGAIN_S)


def _is_open(sock: socket.socket, until: float) -> Task[bool]:
    yield Wait(sock, READ, until)
    return bool(sock.recv(4096))  # a CHALLENGE arrives if that rank is a chair too
