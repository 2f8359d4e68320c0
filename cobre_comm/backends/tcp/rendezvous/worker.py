"""A worker in the rendezvous: it attaches, exchanges parts, learns where leaders listen, links."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cobre_kernels.tcp import tags

from cobre_comm.backends.tcp.links import accepted_by, opened_by
from cobre_comm.backends.tcp.rendezvous import messages
from cobre_comm.backends.tcp.rendezvous.acceptor import Acceptor
from cobre_comm.backends.tcp.rendezvous.addresses import Endpoint, resolve, same_host
from cobre_comm.backends.tcp.rendezvous.connector import Attempts, open_link
from cobre_comm.backends.tcp.rendezvous.event_loop import Task
from cobre_comm.backends.tcp.rendezvous.handshake import Handshake, introduce
from cobre_comm.backends.tcp.rendezvous.participant import LINK_ADVICE, Participant
from cobre_comm.backends.tcp.rendezvous.protocol import GRACE_S
from cobre_comm.backends.tcp.rendezvous.sockets import close_all, listen_at_host
from cobre_comm.config import TcpConfig
from cobre_comm.errors import named
from cobre_comm.system.running_time import running_s

NAMED = 3  # the most unreachable ranks that one message names


class Joiner(Participant):
    """A worker in the rendezvous: any rank except rank 0."""

    def __init__(self, config: TcpConfig, *, listens: bool = False) -> None:
        super().__init__(config)
        self._rank_0_listens = listens
        self._opening: set[Attempts] = set()

    def attach(self) -> None:
        """Attach to rank 0, and receive JOB."""
        control = self._open_control()
        self._limit = self._deadline() + GRACE_S
        self._serve(0, self._hear(0, control, messages.JOB))
        job = messages.unpack_job(self._receive())
        self._serve(0, messages.watch(control, 0))
        self.links.eager_bytes, self.links.ranks_here = job.eager_bytes, job.ranks_here
        self._secret = job.secret

    def exchange(self, part: bytes, *, last: bool = False) -> bytes:
        """Send the part of this rank to rank 0, and receive the parts of all ranks."""
        everything = self.size * len(part)
        due = messages.Expected(tags.PARTS, everything, everything)
        return self._answer_to(part, due, last=last)

    def _answer_to(self, part: bytes, due: messages.Expected, *, last: bool = False) -> bytes:
        """Send the part of this rank to rank 0, and return the frame by which rank 0 answers."""
        control = self.links.control[0]

        def talk() -> Task[None]:
            yield from self._tell(0, control, messages.pack_checked(tags.PART, part))
            yield from self._hear(0, control, due)

        self._serve(0, talk())
        frame = self._receive()
        if not last:
            self._serve(0, messages.watch(control, 0))
        return frame

    def _receive(self) -> bytes:
        """Return the frame that is due from rank 0."""
        self._until(lambda: 0 in self._frames, self._limit, self._why_not_started)
        return self._frames.pop(0)

    def _open_control(self) -> socket.socket:
        """Return the control link to rank 0."""
        config, attempts = self._config, Attempts(0, listens=self._rank_0_listens)
        host = config.coordinator or ""  # required of workers

        def why_not() -> str:
            return (
                f"could not attach to rank 0 at {host} port {config.port} within "
                f"{config.connect_timeout_ms} ms ({attempts}); is rank 0 started with "
                f"COBRE_TCP_PORT={config.port}? Check COBRE_TCP_COORDINATOR and COBRE_TCP_PORT, "
                f"or raise COBRE_TCP_CONNECT_TIMEOUT_MS"
            )

        self._open(attempts, tags.CONTROL, self._token, lambda: resolve(host, config.port))
        self._until(lambda: not self._opening, self._deadline(), why_not)
        return self.links.control[0]

    def _open(
        self, attempts: Attempts, purpose: int, key: bytes, endpoints: Callable[[], list[Endpoint]]
    ) -> None:
        """Start to open a link to a lower rank."""
        peer = attempts.rank

        def describe(sock: socket.socket, loopback_only: bool) -> Handshake:
            if purpose == tags.CONTROL and peer == 0:
                self._listen(sock, loopback_only)
            return introduce(self.rank, self.size, purpose, peer, self._port())

        def admit(sock: socket.socket, process: bytes) -> None:
            self.links.put(peer, purpose, sock)
            self.processes[peer] = process
            self._opening.remove(attempts)

        self._opening.add(attempts)
        self._loop.start(open_link(attempts, endpoints, describe, key, admit))

    def _listen(self, control: socket.socket, loopback_only: bool) -> None:
        """Listen for the other workers: at loopback, if all ranks are here; else everywhere."""
        close_all(self._listeners)
        self._listeners = [listen_at_host(control.getsockname() if loopback_only else None)]

    def _port(self) -> int:
        return int(self._listeners[0].getsockname()[1])

    def _link(self, leaders: Sequence[int], others: Sequence[int]) -> dict[int, tuple[Any, ...]]:
        """Open the links to lower leaders, and meanwhile accept the links of higher leaders."""
        rank_0 = messages.peer_of(self.links.control[0], 0)
        frame = self._answer_to(b"", messages.peers(len(leaders) - 1))
        limit_ms, told = messages.unpack_peers(frame, rank_0)
        endpoints = dict(zip(leaders, [same_host(rank_0, rank_0[1]), *told], strict=True))
        if others:
            self._link_leader(others, endpoints, limit_ms / 1000 if limit_ms else math.inf)
        found = {leader: endpoint.sockaddr for leader, endpoint in endpoints.items()}
        return {**found, self.rank: self._listeners[0].getsockname()}

    def _link_leader(
        self, leaders: Sequence[int], endpoints: Mapping[int, Endpoint], limit_s: float
    ) -> None:
        key = self.key
        links = 2 * (len(leaders) - 1)
        acceptor = self._accept(
            lambda _: key, self._admit, accepted_by(self.rank, leaders), links=links
        )
        for peer, purpose in opened_by(self.rank, leaders):
            self._open(Attempts(peer), purpose, key, [endpoints[peer]].copy)
        self._until(
            lambda: not self._opening and not acceptor.missing,
            running_s() + limit_s,
            lambda: self._why_not_linked(acceptor),
        )

    def _why_not_linked(self, acceptor: Acceptor) -> str:
        """Name the ranks that this rank could not reach, or the ranks that did not reach it."""
        rank = self.rank
        failed = sorted(self._opening, key=lambda attempts: attempts.rank)
        if failed:
            tried = "; ".join(f"rank {one.rank}: {one}" for one in failed[:NAMED])
            more = f" and {len(failed) - NAMED} more links" if len(failed) > NAMED else ""
            return f"rank {rank} could not connect to {tried}{more}; {LINK_ADVICE}"
        absent = named({peer for peer, _ in acceptor.missing})
        at = f"at its port {self._port()}"
        return f"rank {rank} was not reached by {absent} {at}; {LINK_ADVICE}"

    def _why_not_started(self) -> str:
        return (
            f"rank 0 did not start within {self._config.connect_timeout_ms} ms after this rank had "
            f"attached; raise COBRE_TCP_CONNECT_TIMEOUT_MS on all ranks"
        )
