"""Rank 0 in the rendezvous: it attaches the workers, passes parts on, says where leaders listen."""

from __future__ import annotations

import math
import secrets
import socket
from collections import Counter
from collections.abc import Sequence
from typing import Any

from cobre_kernels.tcp import tags

from cobre_comm.backends.tcp.process import machine_of, this_machine
from cobre_comm.backends.tcp.rendezvous import messages
from cobre_comm.backends.tcp.rendezvous.addresses import Address
from cobre_comm.backends.tcp.rendezvous.event_loop import Task
from cobre_comm.backends.tcp.rendezvous.handshake import Handshake
from cobre_comm.backends.tcp.rendezvous.participant import LINK_ADVICE, Participant
from cobre_comm.backends.tcp.rendezvous.protocol import LINK_SHARE
from cobre_comm.backends.tcp.rendezvous.sockets import BACKLOG, is_loopback, listen_for_workers
from cobre_comm.config import TcpConfig
from cobre_comm.errors import InitializationFailed, named
from cobre_comm.system.log import logger
from cobre_comm.system.running_time import running_s

EAGER_BYTES = 64 * 1024  # if all ranks are on one machine; measured, see docs/benchmarks/tcp.md
FAR_EAGER_BYTES = 8 * 1024  # over a network, which is slower than loopback


class Coordinator(Participant):
    """Rank 0 in the rendezvous; the workers attach at ``listener``, or at a new listener."""

    def __init__(self, config: TcpConfig, listener: socket.socket | None) -> None:
        super().__init__(config)
        self._listeners = [listener] if listener else []
        self._secret = secrets.token_bytes(messages.SECRET_BYTES)
        self._workers: dict[int, tuple[Address, int]] = {}  # by ATTACHED rank: where it listens

    def attach(self) -> None:
        """Take every worker from ABSENT to BUSY."""
        self._limit = self._deadline()
        self._listen()
        only_here = all(is_loopback(listener) for listener in self._listeners)
        expected = {
            (peer, purpose) for peer in range(1, self.size) for purpose in (tags.CONTROL, tags.DATA)
        }
        others = self.size - 1
        self._accept(self._key, self._admit, expected, links=others, loopback_only=only_here)
        self._until(lambda: len(self._workers) == others, self._limit, self._why_not_attached)
        self._tell_all()

    def _link(self, leaders: Sequence[int], others: Sequence[int]) -> dict[int, tuple[Any, ...]]:
        """Make room for data links, and send PEERS; the next exchange waits for linked workers."""
        if self._acceptor is not None:
            self._acceptor.make_room(len(others) - 1)
        self._gather(b"")
        remaining_ms = (self._limit - running_s()) * 1000
        limit_ms = 0 if self._limit == math.inf else max(1, int(LINK_SHARE * remaining_ms))
        frames = {
            is_near: messages.pack_peers(limit_ms, self._listeners_for(leaders, is_near))
            for is_near in (False, True)
        }
        self._say({rank: frames[seen.is_loopback] for rank, (seen, _) in self._workers.items()})
        found = {rank: messages.peer_of(sock, rank) for rank, sock in self.links.control.items()}
        if len(self._listeners) == 1:
            found[0] = self._listeners[0].getsockname()
        return found

    def exchange(self, part: bytes, *, last: bool = False) -> bytes:
        """Receive the parts of all workers, then send all parts to all workers."""
        everything = self._gather(part)
        frame = messages.pack_checked(tags.PARTS, everything)
        self._say(dict.fromkeys(range(1, self.size), frame), last=last)
        return everything

    def _gather(self, part: bytes) -> bytes:
        """Receive the parts of all workers; raise unless each is as long as rank 0's ``part``."""
        others = self.size - 1  # a number: cheap to compare when each part arrives
        self._until(lambda: len(self._frames) == others, self._limit, self._why_not_ready)
        parts = [part, *(self._frames.pop(rank) for rank in range(1, self.size))]
        for rank, given in enumerate(parts):
            if len(given) != len(part):
                raise InitializationFailed(
                    "tcp", f"rank {rank} gave {len(given)} bytes out of turn, {len(part)} were due"
                )
        return b"".join(parts)

    def _listen(self) -> None:
        host, port = self._config.bind_addr, self._config.port
        if self._listeners:
            self._listeners[0].setblocking(False)
            self._listeners[0].listen(BACKLOG)
        else:
            self._listeners = listen_for_workers(host, port)
        far = [_describe(one) for one in self._listeners if not is_loopback(one)]
        if far and not self._config.token:
            logger.warning(
                "tcp rank 0 listens at %s without a token: any program that can connect can join; "
                "set COBRE_TCP_TOKEN to the same secret on all ranks",
                " and ".join(far),
            )

    def _key(self, purpose: int) -> bytes:
        return self._token if purpose == tags.CONTROL else self.key

    def _admit(self, peer: Handshake, sock: socket.socket, address: Address) -> None:
        super()._admit(peer, sock, address)
        if peer.purpose == tags.CONTROL:
            self._workers[peer.rank] = address, peer.port
            self._serve(peer.rank, messages.watch(sock, peer.rank))

    def _tell_all(self) -> None:
        """Send every worker the facts about the job (JOB)."""
        machines = Counter([this_machine(), *map(machine_of, self.processes.values())])
        self.links.ranks_here = machines[this_machine()]
        default = EAGER_BYTES if len(machines) == 1 else FAR_EAGER_BYTES
        eager_bytes = self._config.eager_bytes
        self.links.eager_bytes = default if eager_bytes is None else eager_bytes
        job = messages.JobMessage(self.links.eager_bytes, 0, self._secret)
        here = {rank: machines[machine_of(each)] for rank, each in self.processes.items()}
        self._say({rank: job._replace(ranks_here=count).pack() for rank, count in here.items()})

    def _say(self, frames: dict[int, bytes], *, last: bool = False) -> None:
        """Send a frame to each worker, and meanwhile receive the next part from each."""
        self._said.clear()
        for rank, frame in frames.items():
            control = self.links.control[rank]
            self._serve(rank, (self._tell if last else self._talk)(rank, control, frame))
        self._until(lambda: len(self._said) == len(frames), self._limit, self._why_not_ready)

    def _talk(self, rank: int, control: socket.socket, frame: bytes) -> Task[None]:
        yield from self._tell(rank, control, frame)
        yield from self._hear(rank, control, messages.PART)
        yield from messages.watch(control, rank)

    def _listeners_for(
        self, leaders: Sequence[int], is_near: bool
    ) -> list[tuple[Address | None, int]]:
        """Return where leaders beside rank 0 listen: for near workers, or for all other workers.

        A worker is near if rank 0 sees it at a loopback address: it is on rank 0's machine. A
        worker on another machine reaches a near leader at the host at which it has reached rank 0.
        """
        told = (self._workers[rank] for rank in leaders[1:])
        return [(None if at.is_loopback and not is_near else at, port) for at, port in told]

    def _why_not_attached(self) -> str:
        absent = named(rank for rank in range(1, self.size) if rank not in self._workers)
        where = " and ".join(_describe(listener) for listener in self._listeners)
        return (
            f"{absent} of {self.size} did not attach to rank 0 at {where} within "
            f"{self._config.connect_timeout_ms} ms; start them with COBRE_TCP_COORDINATOR and "
            f"COBRE_TCP_PORT={self._config.port}, or raise COBRE_TCP_CONNECT_TIMEOUT_MS"
        )

    def _why_not_ready(self) -> str:
        late = named(self._workers.keys() - self._frames.keys())
        return (
            f"{late} of {self.size} attached, but did not reach all other ranks "
            f"within {self._config.connect_timeout_ms} ms; {LINK_ADVICE}"
        )


def _describe(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"{host} port {port}"
