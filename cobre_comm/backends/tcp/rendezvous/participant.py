"""What rank 0 and the workers have in common while they meet."""

from __future__ import annotations

import logging
import math
import socket
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from cobre_comm.backends.tcp.links import Links, accepted_by, opened_by
from cobre_comm.backends.tcp.rendezvous.acceptor import MOST_UNAUTHENTICATED, Acceptor, Arrive
from cobre_comm.backends.tcp.rendezvous.drop_log import DropLog
from cobre_comm.backends.tcp.rendezvous.event_loop import Loop
from cobre_comm.backends.tcp.rendezvous.sockets import close_all, make_room
from cobre_comm.config import TcpConfig
from cobre_comm.errors import InitializationFailed

NOTICE_S = 10.0

_logger = logging.getLogger("cobre_comm")


class Participant:
    """One rank of those who meet; a context manager.

    On leaving it nobody listens and nothing is under way any more; after an error, the links that
    were there are closed too.

    Parameters
    ----------
    config : TcpConfig
        Of this rank.
    """

    def __init__(self, config: TcpConfig) -> None:
        self.links = Links.none_yet(config.size)
        self._config = config
        self._token = (config.token or "").encode(errors="surrogateescape")
        self._loop = Loop()
        self._log = DropLog(config.rank)
        self._listeners: list[socket.socket] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.close()
        self._log.close()
        close_all(self._listeners)
        if error is not None:
            self.links.close()

    def meet(self) -> None:
        """Return when every rank has all its links, or raise ``InitializationFailed``."""
        raise NotImplementedError

    def _limit(self) -> float:
        """Return when a wait that begins now is over."""
        limit_ms = self._config.connect_timeout_ms
        return time.monotonic() + limit_ms / 1000 if limit_ms else math.inf

    def _until(self, done: Callable[[], bool], until: float, failure: Callable[[], str]) -> None:
        """Serve all tasks until ``done()``; fail if that takes too long.

        Who waits for a human to start the other ranks sees after a while what it waits for.
        """
        soon = time.monotonic() + NOTICE_S
        if until > soon and not self._loop.run(done, soon):
            limit_s = self._config.connect_timeout_ms / 1000
            _logger.warning(
                "tcp rank %d still waits for the others after %g s (limit: %s)",
                self._config.rank, NOTICE_S, f"{limit_s:g} s" if limit_s else "none",
            )  # fmt: skip
        if not self._loop.run(done, until):
            raise InitializationFailed("tcp", failure())

    def _acceptor(self, key_of: Callable[[int], bytes], arrive: Arrive) -> Acceptor:
        rank, size = self._config.rank, self._config.size
        links = len(accepted_by(rank, size)) + len(opened_by(rank, size))
        strangers = make_room(links, MOST_UNAUTHENTICATED + size)
        return Acceptor(self._loop, self._config, key_of, arrive, self._log, strangers)
