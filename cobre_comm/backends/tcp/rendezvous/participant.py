"""The common part of coordinator and workers during the rendezvous."""

from __future__ import annotations

import abc
import logging
import math
import socket
from collections.abc import Callable

from cobre_comm.backends.tcp.links import Links, accepted_by, opened_by
from cobre_comm.backends.tcp.rendezvous.acceptor import Acceptor, Admit
from cobre_comm.backends.tcp.rendezvous.event_loop import Loop
from cobre_comm.backends.tcp.rendezvous.protocol import MOST_UNAUTHENTICATED
from cobre_comm.backends.tcp.rendezvous.sockets import close_all, has_room, reserve_descriptors
from cobre_comm.common.running_time import running_s
from cobre_comm.config import TcpConfig
from cobre_comm.errors import InitializationFailed

LOG_WAIT_AFTER_S = 10.0
LINK_ADVICE = (
    "every rank must be able to connect to every other (a firewall?), or raise "
    "COBRE_TCP_CONNECT_TIMEOUT_MS"
)

_logger = logging.getLogger("cobre_comm")


class Participant(abc.ABC):
    """One rank in the rendezvous.

    Parameters
    ----------
    config : TcpConfig
        Of this rank.
    """

    def __init__(self, config: TcpConfig) -> None:
        self.links = Links([None] * config.size, [None] * config.size)
        self._config = config
        self._token = (config.token or "").encode(errors="surrogateescape")
        self._processes: dict[int, bytes] = {}  # by rank: what it told of its process
        self._loop = Loop()
        self._acceptor: Acceptor | None = None
        self._listeners: list[socket.socket] = []

    @abc.abstractmethod
    def run(self) -> None:
        """Return when every rank has all its links.

        Raises
        ------
        InitializationFailed
            If ranks are missing, refused or lost; the ranks that have attached are told why.
        """

    def close(self) -> None:
        """Cancel all tasks and close all listeners; the links stay."""
        self._loop.close()
        if self._acceptor is not None:
            self._acceptor.close()
        close_all(self._listeners)

    def watch_processes(self) -> None:
        """Watch the processes of the peers, unless the limit of open files leaves no room."""
        if has_room(len(self._processes)):
            for rank, process in self._processes.items():
                self.links.watch(rank, process)

    def _deadline(self) -> float:
        """Return when a wait that begins now is over."""
        limit_ms = self._config.connect_timeout_ms
        return running_s() + limit_ms / 1000 if limit_ms else math.inf

    def _until(self, done: Callable[[], bool], until: float, failure: Callable[[], str]) -> None:
        """Run all tasks until ``done()``; raise what ``failure()`` says if that takes too long.

        A human may be starting the other ranks, so after a while the log mentions the wait.
        """
        soon = running_s() + LOG_WAIT_AFTER_S
        if until > soon and not self._loop.run(done, soon):
            limit_s = self._config.connect_timeout_ms / 1000
            _logger.warning(
                "tcp rank %d still waits for the others after %g s (limit: %s)",
                self._config.rank, LOG_WAIT_AFTER_S, f"{limit_s:g} s" if limit_s else "none",
            )  # fmt: skip
        if not self._loop.run(done, until):
            raise InitializationFailed("tcp", failure())

    def _accept(
        self, key_of: Callable[[int], bytes], admit: Admit, *, loopback_only: bool = False
    ) -> Acceptor:
        """Begin to accept links at the listeners."""
        rank, size = self._config.rank, self._config.size
        links = len(accepted_by(rank, size)) + len(opened_by(rank, size))
        most_unauthenticated = reserve_descriptors(links, MOST_UNAUTHENTICATED + size)
        acceptor = Acceptor(self._loop, self._config, key_of, admit, most_unauthenticated)
        acceptor.serve(self._listeners, loopback_only=loopback_only)
        self._acceptor = acceptor
        return acceptor
