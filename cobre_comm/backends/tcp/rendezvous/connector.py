"""The connecting end of a link: try every address, again and again, until one admits or refuses."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable

from cobre_comm.backends.tcp.rendezvous.addresses import Endpoint
from cobre_comm.backends.tcp.rendezvous.event_loop import Task, connect, pause
from cobre_comm.backends.tcp.rendezvous.handshake import (
    AuthenticationFailed,
    Handshake,
    Refused,
    handshake_as_connector,
)
from cobre_comm.backends.tcp.rendezvous.protocol import CHALLENGE_S, CONNECT_S
from cobre_comm.backends.tcp.rendezvous.sockets import prepare
from cobre_comm.errors import InitializationFailed
from cobre_comm.system.running_time import running_s

FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.5
GROWTH = 1.5
NOBODY = ConnectionRefusedError, ConnectionResetError


class Attempts:
    """The attempts to reach a rank, in the words of an error message.

    ``listens`` says that the rank listens already. If an attempt finds no listener all the same,
    the rank has closed its port, and further attempts are useless.
    """

    def __init__(self, rank: int, *, listens: bool = False) -> None:
        self.rank = rank
        self._listens = listens
        self._began = running_s()
        self._count = 0
        self._last: dict[str, str] = {}

    def note(self, where: str, error: Exception) -> None:
        """Count a failed attempt, and keep the last error of each address.

        An attempt finds nobody if nobody listens, or if the port closes before the attempt is
        accepted. In this case the error of an earlier attempt is kept, because it says more.
        """
        self._count += 1
        if self._listens and isinstance(error, NOBODY):
            raise error
        if where in self._last and isinstance(error, NOBODY):
            return
        text = error.strerror if isinstance(error, OSError) else None
        self._last[where] = text or str(error)

    def __str__(self) -> str:
        if not self._count:
            return "no attempt has ended yet"
        tried = "; ".join(f"{where}: {trouble}" for where, trouble in self._last.items())
        waited_s = running_s() - self._began
        return f"{self._count} failed attempts in {waited_s:.1f} s; last errors: {tried}"


def open_link(
    attempts: Attempts,
    endpoints: Callable[[], list[Endpoint]],
    describe: Callable[[socket.socket, bool], Handshake],
    key: bytes,
    admit: Callable[[socket.socket, bytes], None],
) -> Task[None]:
    """Connect to a rank and shake hands, however long it takes.

    ``attempts`` notes every attempt that FAILED. ``endpoints`` returns where the rank may be, and
    may raise ``OSError``. ``describe`` gets the socket, and whether all ranks are on this machine;
    it returns the fields to send. ``admit`` receives the link when it is ADMITTED, and the identity
    of the peer's process. If the link is REFUSED, ``InitializationFailed`` is raised.
    """
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            candidates = endpoints()
        except OSError as error:
            candidates = []
            attempts.note("its name", error)
        running_s(has_run=True)  # asking a name server may have taken seconds
        for endpoint in candidates:
            try:
                sock, process = yield from _try(endpoint, describe, key)
            except (OSError, AuthenticationFailed) as error:
                attempts.note(str(endpoint), error)
            except Refused as error:
                raise InitializationFailed(
                    "tcp", f"rank {attempts.rank} refused this rank: it {error.args[0]}"
                ) from None
            else:
                admit(sock, process)
                return
        # Jitter, so that hundreds of ranks that were started together do not always connect
        # together.
        yield from pause(random.uniform(0.5, 1.0) * pause_s)
        pause_s = min(GROWTH * pause_s, LONGEST_PAUSE_S)


def _try(
    endpoint: Endpoint, describe: Callable[[socket.socket, bool], Handshake], key: bytes
) -> Task[tuple[socket.socket, bytes]]:
    """Take one connection from CONNECTING to ADMITTED; return it, and the peer's process."""
    sock = socket.socket(endpoint.family, socket.SOCK_STREAM)
    try:
        prepare(sock)
        yield from connect(sock, endpoint.sockaddr, running_s() + CONNECT_S)
        until = running_s() + CHALLENGE_S
        process = yield from handshake_as_connector(
            sock, lambda only: describe(sock, only), key, until
        )
    except BaseException:
        sock.close()
        raise
    return sock, process
