"""The part of every rank but 0: attach to rank 0, link up with the others, begin."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable

from cobre_kernels.tcp import tags

from cobre_comm.backends.tcp.links import opened_by
from cobre_comm.backends.tcp.rendezvous.acceptor import Acceptor
from cobre_comm.backends.tcp.rendezvous.addresses import Address, Endpoint, resolve
from cobre_comm.backends.tcp.rendezvous.connector import Attempts, reach
from cobre_comm.backends.tcp.rendezvous.event_loop import Task
from cobre_comm.backends.tcp.rendezvous.frames import lost, pack_frame, receive_frame, send_refused
from cobre_comm.backends.tcp.rendezvous.handshake import OWN_BYTE_ORDER, Handshake, this_machine
from cobre_comm.backends.tcp.rendezvous.participant import Participant
from cobre_comm.backends.tcp.rendezvous.peers import Peers, peers_bytes, unpack_peers
from cobre_comm.backends.tcp.rendezvous.sockets import close_all, listen_for_peers
from cobre_comm.config import TcpConfig
from cobre_comm.errors import InitializationFailed

GRACE_S = 1.0  # rank 0 came first and gives up first: it knows who is missing
NAMED = 3  # ranks that could not be reached, in one message


class Worker(Participant):
    """Any rank but 0."""

    def __init__(self, config: TcpConfig) -> None:
        super().__init__(config)
        self._opening: set[Attempts] = set()
        self._begun = False

    def meet(self) -> None:
        """Return when every rank has all its links.

        Raises
        ------
        InitializationFailed
            If rank 0 is not there or refuses this one, or ranks do not come or leave.
        """
        control = self._attach()
        until = self._limit() + GRACE_S
        try:
            peers = self._learn(control, until)
            self._loop.start(self._await_start(control))
            self._link_up(peers)
            self._report_ready(control)
            self._until(lambda: self._begun, until, self._no_word)
        except InitializationFailed as error:
            send_refused(control, error)
            raise

    def _no_word(self) -> str:
        return (
            f"rank 0 did not begin within {self._config.connect_timeout_ms} ms after this rank had "
            f"attached; raise COBRE_TCP_CONNECT_TIMEOUT_MS on all ranks"
        )

    def _attach(self) -> socket.socket:
        """Return the control link to rank 0."""
        config, attempts = self._config, Attempts(0)
        host = config.coordinator or ""  # required of workers

        def unreachable() -> str:
            return (
                f"could not attach to rank 0 at {host} port {config.port} within "
                f"{config.connect_timeout_ms} ms ({attempts}); is rank 0 started with "
                f"COBRE_TCP_PORT={config.port}? Check COBRE_TCP_COORDINATOR and COBRE_TCP_PORT, "
                f"or raise COBRE_TCP_CONNECT_TIMEOUT_MS"
            )

        self._open(attempts, tags.CONTROL, self._token, lambda: resolve(host, config.port))
        self._until(lambda: not self._opening, self._limit(), unreachable)
        control = self.links.control[0]
        assert control is not None
        return control

    def _open(
        self, attempts: Attempts, purpose: int, key: bytes, endpoints: Callable[[], list[Endpoint]]
    ) -> None:
        """Begin to open a link to a lower rank."""
        peer = attempts.rank

        def describe(sock: socket.socket, loopback_only: bool) -> Handshake:
            if purpose == tags.CONTROL and peer == 0:
                self._listen(sock, loopback_only)
            return Handshake(
                rank=self._config.rank,
                size=self._config.size,
                version=tags.PROTOCOL_VERSION,
                byte_order=OWN_BYTE_ORDER,
                purpose=purpose,
                target=peer,
                port=self._port(),
                machine=this_machine(),
            )

        def arrive(sock: socket.socket) -> None:
            self.links.put(peer, purpose, sock, accepted=False)
            self._opening.remove(attempts)

        self._opening.add(attempts)
        self._loop.start(reach(attempts, endpoints, describe, key, arrive))

    def _listen(self, control: socket.socket, loopback_only: bool) -> None:
        """Open the port for the other workers, once it is known who may come."""
        close_all(self._listeners)
        self._listeners = [listen_for_peers(control, loopback_only=loopback_only)]

    def _port(self) -> int:
        port: int = self._listeners[0].getsockname()[1]
        return port

    def _learn(self, control: socket.socket, until: float) -> Peers:
        """Return what rank 0 tells when all have come."""
        told: list[bytes] = []

        def listen() -> Task[None]:
            length = peers_bytes(self._config.size)
            told.append((yield from receive_frame(control, 0, tags.PEERS, length)))

        try:
            rank_0 = control.getpeername()
        except OSError as error:
            raise lost(0) from error
        self._loop.start(listen())
        self._until(lambda: bool(told), until, self._no_word)
        peers = unpack_peers(told[0], rank_0)
        self.links.star_bytes = peers.star_bytes
        self.links.ranks_here = peers.ranks_here
        return peers

    def _link_up(self, peers: Peers) -> None:
        """Open the links to lower ranks while accepting those of higher ones."""
        config, key = self._config, self._token + peers.secret
        acceptor = self._acceptor(lambda _: key, self._arrive)
        acceptor.serve(self._listeners)
        for peer, purpose in opened_by(config.rank, config.size)[1:]:
            self._open(Attempts(peer), purpose, key, _only(peers.endpoints[peer]))
        patience_s = peers.patience_ms / 1000 if peers.patience_ms else math.inf
        self._until(
            lambda: not self._opening and not acceptor.missing,
            time.monotonic() + patience_s,
            lambda: self._unlinked(acceptor),
        )

    def _arrive(self, peer: Handshake, sock: socket.socket, address: Address) -> None:
        self.links.put(peer.rank, peer.purpose, sock, accepted=True)

    def _unlinked(self, acceptor: Acceptor) -> str:
        """Say which ranks this one could not reach, or which did not reach it."""
        rank = self._config.rank
        advice = (
            "every rank must be able to connect to every other (a firewall?), or raise "
            "COBRE_TCP_CONNECT_TIMEOUT_MS"
        )
        failed = sorted(self._opening, key=lambda attempts: attempts.rank)
        if failed:
            tried = "; ".join(f"rank {one.rank}: {one}" for one in failed[:NAMED])
            more = f" and {len(failed) - NAMED} more links" if len(failed) > NAMED else ""
            return f"rank {rank} could not connect to {tried}{more}; {advice}"
        absent = ", ".join(str(peer) for peer in sorted({peer for peer, _ in acceptor.missing}))
        return f"rank {rank} was not reached by ranks {absent} at its port {self._port()}; {advice}"

    def _report_ready(self, control: socket.socket) -> None:
        try:
            control.send(pack_frame(tags.READY))  # a few bytes, the first since the handshake
        except OSError as error:
            raise lost(0) from error

    def _await_start(self, control: socket.socket) -> Task[None]:
        yield from receive_frame(control, 0, tags.START)
        self._begun = True


def _only(endpoint: Endpoint) -> Callable[[], list[Endpoint]]:
    return lambda: [endpoint]
