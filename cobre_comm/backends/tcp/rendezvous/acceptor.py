"""The accepting side: whoever connects is heard, nobody can stall it, only proven peers stay."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from cobre_kernels.tcp import tags

from cobre_comm.backends.tcp.links import accepted_by
from cobre_comm.backends.tcp.rendezvous.addresses import Address, address_of
from cobre_comm.backends.tcp.rendezvous.drop_log import DropLog
from cobre_comm.backends.tcp.rendezvous.event_loop import NEVER, READ, Loop, Task, Wait, pause
from cobre_comm.backends.tcp.rendezvous.handshake import (
    BYTE_ORDERS,
    OWN_BYTE_ORDER,
    Handshake,
    Refused,
    Unauthenticated,
    handshake_as_acceptor,
)
from cobre_comm.backends.tcp.rendezvous.sockets import prepare
from cobre_comm.config import TcpConfig

HANDSHAKE_S = 5.0
MOST_UNAUTHENTICATED = 512  # connections that have proven nothing, beyond one for each rank
ACCEPTED_AT_ONCE = 64
PAUSE_S = 0.05  # when there is no descriptor left
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

Arrive: TypeAlias = Callable[[Handshake, socket.socket, Address], None]


class Acceptor:
    """Accepts the links that higher ranks open.

    Those who have said something are heard before new ones are let in. If there are too many who
    have proven nothing, the oldest of the host that has most of them gives way: a flood from
    elsewhere does not reach a slow peer, and one from its own host leaves it time to answer.

    Parameters
    ----------
    loop : Loop
        Serves all tasks.
    config : TcpConfig
        Of this rank.
    key_of : callable
        Returns the key of handshakes for a purpose.
    arrive : callable
        Receives every accepted link.
    log : DropLog
        Is told of those that were not.
    most_unauthenticated : int
        How many connections there may be that are not proven.
    """

    def __init__(
        self,
        loop: Loop,
        config: TcpConfig,
        key_of: Callable[[int], bytes],
        arrive: Arrive,
        log: DropLog,
        most_unauthenticated: int,
    ) -> None:
        self.missing = accepted_by(config.rank, config.size)
        self._expected = frozenset(self.missing)
        self._loop = loop
        self._config = config
        self._key_of = key_of
        self._arrive = arrive
        self._log = log
        self._most_strangers = most_unauthenticated
        self._strangers = 0
        self._crowds: dict[str, dict[socket.socket, Task[None]]] = {}  # by host; in order

    def serve(self, listeners: Sequence[socket.socket], *, loopback_only: bool = False) -> None:
        """Begin to accept."""
        for listener in listeners:
            self._loop.start(self._accept(listener, loopback_only))

    def _accept(self, listener: socket.socket, loopback_only: bool) -> Task[None]:
        while True:
            yield Wait(listener, READ, NEVER, last=True)
            try:
                for _ in range(ACCEPTED_AT_ONCE):
                    sock, sockaddr = listener.accept()
                    self._let_in(sock, address_of(sockaddr), loopback_only)
            except OSError as error:  # else nobody is there any more, or has left meanwhile
                if error.errno in _EXHAUSTED:
                    self._log.exhausted(error)
                    self._make_room()
                    yield from pause(PAUSE_S)

    def _let_in(self, sock: socket.socket, address: Address, loopback_only: bool) -> None:
        if self._strangers >= self._most_strangers:
            self._make_room()
        task = self._converse(sock, address, loopback_only)
        self._strangers += 1
        self._crowds.setdefault(str(address), {})[sock] = task
        self._loop.start(task)

    def _let_out(self, sock: socket.socket, host: str) -> None:
        self._strangers -= 1
        del self._crowds[host][sock]
        if not self._crowds[host]:
            del self._crowds[host]

    def _make_room(self) -> None:
        if self._strangers:
            host = max(self._crowds, key=lambda one: len(self._crowds[one]))
            self._log.note(host, "gave way to newer ones: too many prove nothing")
            self._loop.cancel(next(iter(self._crowds[host].values())))

    def _converse(self, sock: socket.socket, address: Address, loopback_only: bool) -> Task[None]:
        accepted, host = False, str(address)
        try:
            until = time.monotonic() + HANDSHAKE_S
            handshake = yield from handshake_as_acceptor(
                prepare(sock), self._key_of, self._judge, until, loopback_only=loopback_only
            )
            accepted = True
            self.missing.remove((handshake.rank, handshake.purpose))
            self._arrive(handshake, sock, address)
        except TimeoutError:
            self._log.note(host, f"did not complete the handshake within {HANDSHAKE_S:g} s")
        except OSError:
            self._log.note(host, "left before the handshake was complete")
        except (Unauthenticated, Refused) as error:
            self._log.note(host, error.args[0])
        finally:
            self._let_out(sock, host)
            if not accepted:
                sock.close()

    def _judge(self, peer: Handshake) -> str | None:
        """Return why a proven peer is refused; both sides read it."""
        rank, size = self._config.rank, self._config.size
        if peer.version != tags.PROTOCOL_VERSION:
            return (
                f"is rank {peer.rank} and speaks protocol version {peer.version}, rank {rank} "
                f"speaks {tags.PROTOCOL_VERSION}; use one version for all ranks"
            )
        if peer.byte_order != OWN_BYTE_ORDER:
            orders = [BYTE_ORDERS.get(one, str(one)) for one in (peer.byte_order, OWN_BYTE_ORDER)]
            return f"is rank {peer.rank} of a {orders[0]} machine, rank {rank}'s is {orders[1]}"
        if peer.size != size:
            return (
                f"was told {peer.size} ranks as rank {peer.rank}, rank {rank} was told {size}; "
                f"check COBRE_TCP_SIZE"
            )
        if not 0 < peer.rank < size:
            return f"says rank {peer.rank} of {size} ranks; check COBRE_TCP_RANK"
        return self._judge_link(peer)

    def _judge_link(self, peer: Handshake) -> str | None:
        rank = self._config.rank
        link = peer.rank, peer.purpose
        if peer.target != rank or link not in self._expected:
            return (
                f"is rank {peer.rank} that looks for rank {peer.target} "
                f"(link {peer.purpose}), and found rank {rank}"
            )
        if link not in self.missing:
            return f"says rank {peer.rank}, which is already attached; check COBRE_TCP_RANK"
        return None
