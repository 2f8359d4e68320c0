"""The accepting end of links: it reads from every peer, and no peer can delay the others."""

from __future__ import annotations

import errno
import logging
import socket
from collections import Counter
from collections.abc import Callable, Sequence, Set
from typing import TypeAlias

from cobre_kernels.tcp import tags

from cobre_comm.backends.tcp.rendezvous.addresses import Address, address_of
from cobre_comm.backends.tcp.rendezvous.event_loop import NEVER, READ, Task, TaskLoop, Wait, pause
from cobre_comm.backends.tcp.rendezvous.handshake import (
    BYTE_ORDERS,
    OWN_BYTE_ORDER,
    AuthenticationFailed,
    Handshake,
    Refused,
    handshake_as_acceptor,
)
from cobre_comm.backends.tcp.rendezvous.protocol import HANDSHAKE_S, MOST_UNAUTHENTICATED
from cobre_comm.backends.tcp.rendezvous.sockets import prepare, reserve_descriptors
from cobre_comm.config import TcpConfig
from cobre_comm.reports.launcher import given
from cobre_comm.sources import Sources, own_sources
from cobre_comm.system.log import logger
from cobre_comm.system.running_time import running_s

ACCEPTED_AT_ONCE = 64
PAUSE_S = 0.05  # the pause when no descriptor is left
MOST_LINES = 20  # the most lines in the log, however many connections are dropped
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


Admit: TypeAlias = Callable[[Handshake, socket.socket, Address], None]


class Acceptor:
    """Accepts the links that higher ranks open.

    Connections that have sent something are read before new connections are accepted. If too many
    connections are UNAUTHENTICATED, one is EVICTED: the oldest connection of the host that has the
    most of them. So a flood from another host does not evict a slow peer, and a flood from the
    peer's own host leaves the peer time to answer.

    ``expected`` has the peer and the purpose of each link. ``key_of`` returns the key of handshakes
    for a purpose, and ``admit`` receives every link that is ADMITTED. ``links`` is the number of
    all links of this rank, including those that it opens itself. With ``is_quiet``, dropped
    connections are logged at the level of debugging, because peers connect only to find out whether
    this rank listens.
    """

    def __init__(
        self,
        loop: TaskLoop,
        config: TcpConfig,
        key_of: Callable[[int], bytes],
        admit: Admit,
        expected: Set[tuple[int, int]],
        links: int,
        *,
        is_quiet: bool = False,
    ) -> None:
        self.missing = set(expected)
        self._expected = frozenset(expected)
        self._loop = loop
        self._config = config
        self._key_of = key_of
        self._admit = admit
        self._log = DropLog(config.rank, logging.DEBUG if is_quiet else logging.WARNING)
        self._unauthenticated: dict[socket.socket, tuple[str, Task[None]]] = {}  # oldest first
        self.make_room(links)

    def make_room(self, links: int) -> None:
        """Make room for this many more links; UNAUTHENTICATED connections get the rest of the room.

        ``InitializationFailed`` is raised if the limit of open files is too low.
        """
        wanted, held = MOST_UNAUTHENTICATED + self._config.size, len(self._unauthenticated)
        self._most_unauthenticated = reserve_descriptors(links, wanted, held)

    def serve(self, listeners: Sequence[socket.socket], *, loopback_only: bool = False) -> None:
        """Start to accept connections."""
        for listener in listeners:
            self._loop.start(self._accept(listener, loopback_only))

    def close(self) -> None:
        """Write the summary of dropped connections to the log."""
        self._log.close()

    def _accept(self, listener: socket.socket, loopback_only: bool) -> Task[None]:
        while True:
            yield Wait(listener, READ, NEVER, last=True)
            try:
                for _ in range(ACCEPTED_AT_ONCE):
                    sock, sockaddr = listener.accept()
                    self._begin(sock, address_of(sockaddr), loopback_only)
            except OSError as error:  # most often the queue is empty, or a peer has left the queue
                if error.errno in _EXHAUSTED:
                    self._log.exhausted(error)
                    self._evict_oldest()
                    yield from pause(PAUSE_S)

    def _begin(self, sock: socket.socket, address: Address, loopback_only: bool) -> None:
        """Make a new connection UNAUTHENTICATED."""
        if len(self._unauthenticated) >= self._most_unauthenticated:
            self._evict_oldest()
        task = self._serve(sock, address, loopback_only)
        self._unauthenticated[sock] = str(address), task
        self._loop.start(task)

    def _evict_oldest(self) -> None:
        waiting = self._unauthenticated.values()
        if waiting:
            worst = Counter(host for host, _ in waiting).most_common(1)[0][0]
            self._log.note(worst, "was evicted: too many connections are unauthenticated")
            self._loop.cancel(next(task for host, task in waiting if host == worst))

    def _serve(self, sock: socket.socket, address: Address, loopback_only: bool) -> Task[None]:
        """Take a connection from UNAUTHENTICATED to ADMITTED, REFUSED or DROPPED."""
        is_admitted, host = False, str(address)
        try:
            until = running_s() + HANDSHAKE_S
            peer = yield from handshake_as_acceptor(
                prepare(sock), self._key_of, self._refusal_of, until, loopback_only=loopback_only
            )
            is_admitted = True
            self.missing.remove((peer.rank, peer.purpose))
            self._admit(peer, sock, address)
        except TimeoutError:
            self._log.note(host, f"did not complete the handshake within {HANDSHAKE_S:g} s")
        except OSError:
            self._log.note(host, "left before the handshake was complete")
        except (AuthenticationFailed, Refused) as error:
            self._log.note(host, error.args[0])
        finally:
            del self._unauthenticated[sock]
            if not is_admitted:
                sock.close()

    def _refusal_of(self, peer: Handshake) -> str | None:
        """Return why a PROVEN peer is REFUSED, for messages at both ends; None if it is not."""
        rank, size = self._config.rank, self._config.size
        if peer.version != tags.PROTOCOL_VERSION:
            return (
                f"is rank {peer.rank} and speaks protocol version {peer.version}, rank {rank} "
                f"speaks {tags.PROTOCOL_VERSION}; use one version for all ranks"
            )
        differs = own_sources().against(rank, Sources(peer.sources, peer.place), peer.rank)
        if differs:
            return f"has other sources: {differs}"
        if peer.byte_order != OWN_BYTE_ORDER:
            orders = [BYTE_ORDERS.get(one, str(one)) for one in (peer.byte_order, OWN_BYTE_ORDER)]
            return f"is rank {peer.rank} of a {orders[0]} machine, rank {rank}'s is {orders[1]}"
        if peer.size != size:
            return (
                f"was told {peer.size} ranks as rank {peer.rank}, rank {rank} was told {size}; "
                f"check {given('COBRE_TCP_SIZE')}"
            )
        if not 0 < peer.rank < size:
            return f"says rank {peer.rank} of {size} ranks; check {given('COBRE_TCP_RANK')}"
        link = peer.rank, peer.purpose
        if peer.target != rank or link not in self._expected:
            return (
                f"is rank {peer.rank} that looks for rank {peer.target} "
                f"(link {peer.purpose}), and found rank {rank}"
            )
        if link not in self.missing:
            return (
                f"says rank {peer.rank}, which is already attached; check {given('COBRE_TCP_RANK')}"
            )
        return None


class DropLog:
    """Logs dropped connections: each reason once for each host, up to a limit; then a summary."""

    def __init__(self, rank: int, level: int = logging.WARNING) -> None:
        self._rank, self._level = rank, level
        self._logged: set[tuple[str, str]] = set()
        self._dropped = 0
        self._exhausted = False

    def note(self, host: str, reason: str) -> None:
        """Count a dropped connection; log it if host and reason are new."""
        self._dropped += 1
        if len(self._logged) < MOST_LINES and (host, reason) not in self._logged:
            self._logged.add((host, reason))
            logger.log(
                self._level,
                "tcp rank %d dropped a connection from %s: it %s", self._rank, host, reason,
            )  # fmt: skip

    def exhausted(self, error: OSError) -> None:
        """Log, once, that a connection could not even be accepted."""
        if not self._exhausted:
            self._exhausted = True
            logger.warning("tcp rank %d cannot accept a connection: %s", self._rank, error)

    def close(self) -> None:
        """Log how many connections were dropped, if the lines before do not show all of them."""
        if self._dropped > len(self._logged):
            logger.log(
                self._level,
                "tcp rank %d dropped %d connections during the rendezvous",
                self._rank, self._dropped,
            )  # fmt: skip
