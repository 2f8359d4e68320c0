"""Rank 0's part: gather the workers, tell them of each other, begin."""

from __future__ import annotations

import contextlib
import logging
import math
import secrets
import socket
import time
from collections import Counter
from dataclasses import dataclass

from cobre_kernels.tcp import tags

from cobre_comm.backends.tcp.rendezvous.addresses import Address
from cobre_comm.backends.tcp.rendezvous.event_loop import Task, send
from cobre_comm.backends.tcp.rendezvous.frames import (
    lost,
    pack_frame,
    receive_frame,
    send_refused,
    watch,
)
from cobre_comm.backends.tcp.rendezvous.handshake import Handshake, this_machine
from cobre_comm.backends.tcp.rendezvous.participant import Participant
from cobre_comm.backends.tcp.rendezvous.peers import SECRET_BYTES, pack_peers
from cobre_comm.backends.tcp.rendezvous.sockets import BACKLOG, at_loopback, listen_for_workers
from cobre_comm.config import TcpConfig
from cobre_comm.errors import InitializationFailed

# Of rank 0's remaining time, how much the workers have for their links: one that cannot reach
# another should say so before rank 0 gives up.
WORKERS_SHARE = 0.8

_logger = logging.getLogger("cobre_comm")


@dataclass(frozen=True)
class _Worker:
    """A worker that has attached."""

    handshake: Handshake
    address: Address
    control: socket.socket


class Coordinator(Participant):
    """Rank 0.

    Parameters
    ----------
    config : TcpConfig
        Of this rank.
    star_bytes, far_star_bytes : int
        The first is told to all, or the second, if given, where they are on several machines.
    listener : socket, optional
        Where the workers come, instead of opening one.
    """

    def __init__(
        self,
        config: TcpConfig,
        star_bytes: int,
        far_star_bytes: int | None,
        listener: socket.socket | None,
    ) -> None:
        super().__init__(config)
        self.links.star_bytes = star_bytes
        self._far_star_bytes = far_star_bytes
        self._listeners = [listener] if listener else []
        self._secret = secrets.token_bytes(SECRET_BYTES)
        self._workers: dict[int, _Worker] = {}
        self._talks: dict[int, Task[None]] = {}  # on the control links
        self._ready: set[int] = set()

    def meet(self) -> None:
        """Return when every rank has all its links.

        Raises
        ------
        InitializationFailed
            If ranks do not come or leave; the others are told.
        """
        others, until = self._config.size - 1, self._limit()
        self._listen()
        acceptor = self._acceptor(self._key, self._arrive)
        only_here = all(at_loopback(listener) for listener in self._listeners)
        acceptor.serve(self._listeners, loopback_only=only_here)
        try:
            self._until(lambda: len(self._workers) == others, until, self._absent)
            self._introduce(until)
            self._until(lambda: len(self._ready) == others, until, self._unlinked)
        except InitializationFailed as error:
            for worker in self._workers.values():
                send_refused(worker.control, error)
            raise
        self._begin()

    def _listen(self) -> None:
        host, port = self._config.bind_addr, self._config.port
        if self._listeners:
            self._listeners[0].setblocking(False)
            self._listeners[0].listen(BACKLOG)
        else:
            self._listeners = listen_for_workers(host, port)
        far = [_describe(one) for one in self._listeners if not at_loopback(one)]
        if far and not self._config.token:
            _logger.warning(
                "tcp rank 0 listens at %s without a token: whoever can connect can join the job; "
                "set COBRE_TCP_TOKEN to the same secret on all ranks",
                " and ".join(far),
            )

    def _key(self, purpose: int) -> bytes:
        return self._token if purpose == tags.CONTROL else self._token + self._secret

    def _arrive(self, peer: Handshake, sock: socket.socket, address: Address) -> None:
        self.links.put(peer.rank, peer.purpose, sock, accepted=True)
        if peer.purpose == tags.CONTROL:
            self._workers[peer.rank] = _Worker(peer, address, sock)
            self._talk(peer.rank, watch(sock, peer.rank))

    def _talk(self, rank: int, task: Task[None]) -> None:
        """Put another task in the place of the one on the control link of a worker."""
        if rank in self._talks:
            self._loop.cancel(self._talks[rank])
        self._talks[rank] = task
        self._loop.start(task)

    def _introduce(self, until: float) -> None:
        """Tell every worker where the others are, and wait until it has its links."""
        machines = Counter([this_machine(), *(w.handshake.machine for w in self._workers.values())])
        self.links.ranks_here = machines[this_machine()]
        if len(machines) > 1 and self._far_star_bytes is not None:
            self.links.star_bytes = self._far_star_bytes
        remaining_ms = (until - time.monotonic()) * 1000
        patience_ms = 0 if until == math.inf else max(1, int(WORKERS_SHARE * remaining_ms))
        for rank, worker in self._workers.items():
            peers = pack_peers(
                self.links.star_bytes,
                machines[worker.handshake.machine],
                patience_ms,
                self._secret,
                self._listeners_for(worker),
            )
            self._talk(rank, self._tell(rank, worker.control, peers))

    def _listeners_for(self, reader: _Worker) -> list[tuple[Address | None, int]]:
        """Return where the ranks 1, 2, ... listen, as one of them can use it.

        A worker that rank 0 sees at a loopback address is on rank 0's machine; whoever is
        elsewhere finds it at the host where it found rank 0.
        """
        found: list[tuple[Address | None, int]] = []
        for rank in range(1, self._config.size):
            worker = self._workers[rank]
            beside = worker.address.is_loopback and not reader.address.is_loopback
            found.append((None if beside else worker.address, worker.handshake.port))
        return found

    def _tell(self, rank: int, control: socket.socket, peers: bytes) -> Task[None]:
        try:
            yield from send(control, peers)
        except OSError as error:
            raise lost(rank) from error
        yield from receive_frame(control, rank, tags.READY)
        self._ready.add(rank)
        yield from watch(control, rank)

    def _begin(self) -> None:
        for rank, worker in self._workers.items():
            self._loop.cancel(self._talks[rank])
            with contextlib.suppress(OSError):  # who is gone now is missed by the first collective
                worker.control.send(pack_frame(tags.START))

    def _absent(self) -> str:
        absent = ", ".join(str(r) for r in range(1, self._config.size) if r not in self._workers)
        where = " and ".join(_describe(listener) for listener in self._listeners)
        return (
            f"ranks {absent} of {self._config.size} did not attach to rank 0 at {where} within "
            f"{self._config.connect_timeout_ms} ms; start them with COBRE_TCP_COORDINATOR and "
            f"COBRE_TCP_PORT={self._config.port}, or raise COBRE_TCP_CONNECT_TIMEOUT_MS"
        )

    def _unlinked(self) -> str:
        late = ", ".join(str(rank) for rank in sorted(self._workers.keys() - self._ready))
        return (
            f"ranks {late} of {self._config.size} attached, but did not reach all other ranks "
            f"within {self._config.connect_timeout_ms} ms; every rank must be able to connect to "
            f"every other (a firewall?), or raise COBRE_TCP_CONNECT_TIMEOUT_MS"
        )


def _describe(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"{host} port {port}"
