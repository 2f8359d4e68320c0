"""How the ranks of a tcp job find each other and open the links between them.

``protocol.py`` is the theory of operation: states, messages and time limits. ``coordinator.py`` is
rank 0's part, ``worker.py`` that of every other rank; the other modules are what both stand on.
"""

from __future__ import annotations

import contextlib
import socket

from cobre_comm.backends.tcp.links import Links
from cobre_comm.backends.tcp.rendezvous.coordinator import Coordinator
from cobre_comm.backends.tcp.rendezvous.participant import Participant
from cobre_comm.backends.tcp.rendezvous.worker import Worker
from cobre_comm.config import TcpConfig
from cobre_comm.errors import InitializationFailed

__all__ = ["Links", "rendezvous"]


def rendezvous(
    config: TcpConfig,
    star_bytes: int,
    listener: socket.socket | None = None,
    *,
    far_star_bytes: int | None = None,
) -> Links:
    """Find the other ranks; return the links to them.

    Parameters
    ----------
    config : TcpConfig
        This rank, and where rank 0 is. A worker waits for rank 0 for at most
        ``connect_timeout_ms``, and for the other workers as long as rank 0 does.
    star_bytes : int
        Largest payload that goes through rank 0; rank 0's value holds for all.
    listener : socket, optional
        Where rank 0 listens, instead of opening one; it is closed in any case.
    far_star_bytes : int, optional
        Holds instead of ``star_bytes`` if the ranks are on several machines.

    Raises
    ------
    InitializationFailed
        If ranks are missing, refused or lost; no socket is left open then.
    """
    if config.size == 1:
        if listener is not None:
            listener.close()
        return Links([None], [None], star_bytes=star_bytes)
    try:
        if config.rank == 0:
            return _links_of(Coordinator(config, star_bytes, far_star_bytes, listener))
        return _links_of(Worker(config))
    except OSError as error:
        raise InitializationFailed("tcp", error) from error


def _links_of(participant: Participant) -> Links:
    try:
        with contextlib.closing(participant):
            participant.run()
            participant.watch_processes()
    except BaseException:
        participant.links.close()
        raise
    return participant.links
