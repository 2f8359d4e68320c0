"""The common part of coordinator and workers during the rendezvous."""

from __future__ import annotations

import abc
import math
import socket
from collections.abc import Callable, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre_comm.backends.agreement import Group
from cobre_comm.backends.tcp.links import Links
from cobre_comm.backends.tcp.rendezvous import messages
from cobre_comm.backends.tcp.rendezvous.acceptor import Acceptor, Admit
from cobre_comm.backends.tcp.rendezvous.addresses import Address
from cobre_comm.backends.tcp.rendezvous.event_loop import Task, TaskLoop, send
from cobre_comm.backends.tcp.rendezvous.handshake import Handshake
from cobre_comm.backends.tcp.rendezvous.sockets import close_all, has_room, listen_at_host
from cobre_comm.config import TcpConfig
from cobre_comm.errors import InitializationFailed
from cobre_comm.system.log import logger
from cobre_comm.system.running_time import running_s

LOG_WAIT_AFTER_S = 10.0
LOOK_S = 0.02  # between two calls of ``meanwhile``
LINK_ADVICE = (
    "every rank must be able to connect to every other (a firewall?), or raise "
    "COBRE_TCP_CONNECT_TIMEOUT_MS"
)


class Participant(Group):
    """A rank in the rendezvous; once attached, it can talk to all ranks, so it is a group."""

    _secret: bytes  # the secret of the job; a worker has it after :meth:`attach`

    def __init__(self, config: TcpConfig) -> None:
        self.rank, self.size = config.rank, config.size
        self.links = Links()
        self._config = config
        self._token = (config.token or "").encode(errors="surrogateescape")
        self.processes: dict[int, bytes] = {}  # by rank: the identity of the rank's process
        self._loop = TaskLoop()
        self._acceptor: Acceptor | None = None
        self._listeners: list[socket.socket] = []
        self._limit = math.inf  # the time by which all ranks have to be linked
        self._talks: dict[int, Task[None]] = {}  # by rank: the task that serves its control link
        self._said: set[int] = set()  # the ranks that have been sent the present frame
        self._frames: dict[int, bytes] = {}  # by rank: the frame that has arrived from it
        self.meanwhile: Callable[[], None] | None = None
        self._next_look = 0.0

    @abc.abstractmethod
    def attach(self) -> None:
        """Return when every rank is attached to rank 0, and this rank has learnt so.

        ``InitializationFailed`` is raised if ranks are missing, refused or lost.
        """

    @abc.abstractmethod
    def _link(self, leaders: Sequence[int], others: Sequence[int]) -> dict[int, tuple[Any, ...]]:
        """Link the leaders of each lane; return when this rank is linked.

        ``leaders`` are the leaders of all lanes, in ascending order. ``others`` are the leaders of
        this rank's lane; there are none if this rank leads in no lane.

        Returns socket addresses by rank, as :attr:`~..links.Links.where`. Raises what
        :meth:`attach` raises.
        """

    @abc.abstractmethod
    def exchange(self, part: bytes, *, last: bool = False) -> bytes:
        """Give all ranks a part; return the parts of all ranks, in rank order; collective.

        All parts have the same number of bytes. Raises what :meth:`attach` raises, at the limit of
        the rendezvous or when a rank is lost. After the last exchange a rank may close its links,
        and the other ranks do not count it as lost.
        """

    def gather_rows(self, row: NDArray[Any]) -> NDArray[Any]:
        """Gather one row from each rank, all of one length and dtype; collective."""
        given = self.exchange(row.tobytes())
        return np.frombuffer(given, dtype=row.dtype).reshape(self.size, row.size)

    def refuse(self, error: InitializationFailed) -> None:
        """Tell why this rank gives up: rank 0 tells all attached workers, a worker tells rank 0."""
        for rank, control in self.links.control.items():
            if 0 in (rank, self.rank):
                messages.send_refused(control, error)

    @property
    def key(self) -> bytes:
        """The key that all attached ranks have, and nobody else has."""
        return self._token + self._secret

    def _admit(self, peer: Handshake, sock: socket.socket, address: Address) -> None:
        self.links.put(peer.rank, peer.purpose, sock)
        self.processes[peer.rank] = peer.process

    def listen_again(self) -> socket.socket:
        """Return a socket at a free port of the address at which this rank has listened before."""
        is_one = len(self._listeners) == 1
        return listen_at_host(self._listeners[0].getsockname() if is_one else None)

    def close(self) -> None:
        """Cancel all tasks and close all listeners; the links stay."""
        self._loop.close()
        if self._acceptor is not None:
            self._acceptor.close()
        close_all(self._listeners)

    def start(self, lanes: Sequence[Sequence[int]]) -> None:
        """End the rendezvous: link the leaders of each lane, and close all other links.

        All ranks learn the longest round trip of all links. Then this rank watches the processes of
        its peers, if the limit of open files leaves room. Raises what :meth:`attach` raises.
        """
        own = next((lane for lane in lanes if self.rank in lane), ())
        self.links.where = self._link(sorted(rank for lane in lanes for rank in lane), own)
        seen = np.array(self.links.longest_round_trip_us(), np.int64)
        everyone = self.exchange(seen.tobytes(), last=True)
        self.links.round_trip_us = int(np.frombuffer(everyone, np.int64).max())
        self.links.keep_only(own)
        if has_room(len(self.links.control)):
            for rank in self.links.control:
                self.links.watch(rank, self.processes[rank])

    def _tell(self, rank: int, control: socket.socket, frame: bytes) -> Task[None]:
        """Send a frame on a control link."""
        try:
            yield from send(control, frame)
        except OSError as error:
            raise messages.lost(rank) from error
        self._said.add(rank)

    def _hear(self, rank: int, control: socket.socket, frame: messages.Expected) -> Task[None]:
        """Receive a frame on a control link."""
        self._frames[rank] = yield from messages.receive_frame(control, rank, frame)

    def _serve(self, rank: int, task: Task[None]) -> None:
        """Let a task serve the control link of a rank, in place of an earlier task."""
        if rank in self._talks:
            self._loop.cancel(self._talks[rank])
        self._talks[rank] = task
        self._loop.start(task)

    def _deadline(self) -> float:
        """Return the time, by ``running_s``, at which a wait that begins now has to end."""
        limit_ms = self._config.connect_timeout_ms
        return running_s() + limit_ms / 1000 if limit_ms else math.inf

    def _until(self, done: Callable[[], bool], until: float, failure: Callable[[], str]) -> None:
        """Run all tasks until ``done()``; after the limit, raise an error with ``failure()``.

        After 10 s the wait is mentioned in the log, because somebody may be starting the other
        ranks by hand. Ranks that are attached to rank 0 log nothing, because rank 0 does.
        """
        began = running_s()
        soon = began + LOG_WAIT_AFTER_S
        if until > soon and not self._run(done, soon) and 0 not in self.links.control:
            limit = "none" if until == math.inf else f"{until - began:.0f} s"
            logger.warning(
                "tcp rank %d still waits for the others after %g s (limit: %s)",
                self.rank, LOG_WAIT_AFTER_S, limit,
            )  # fmt: skip
        if not self._run(done, until):
            raise InitializationFailed("tcp", failure())

    def _run(self, done: Callable[[], bool], until: float) -> bool:
        """Run all tasks until ``done()``; return False if the time ``until`` comes first."""
        while self.meanwhile is not None and self._next_look < until:
            if self._loop.run(done, self._next_look):
                return True
            self.meanwhile()
            self._next_look = running_s() + LOOK_S
        return self._loop.run(done, until)

    def _accept(
        self, key_of: Callable[[int], bytes], admit: Admit, expected: Set[tuple[int, int]],
        *, links: int, loopback_only: bool = False,
    ) -> Acceptor:  # fmt: skip
        """Start to accept links at the listeners; in the end this rank has ``links`` links."""
        acceptor = Acceptor(self._loop, self._config, key_of, admit, expected, links)
        acceptor.serve(self._listeners, loopback_only=loopback_only)
        self._acceptor = acceptor
        return acceptor
