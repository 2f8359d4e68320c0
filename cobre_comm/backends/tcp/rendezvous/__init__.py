"""How the ranks of a job meet over TCP: attach to rank 0, link up with one another, begin.

Each worker connects to rank 0 (``coordinator.py``, ``worker.py``), which tells all of them where
the others listen as soon as the last has come. Then every rank connects to every lower one. When
all links are there, rank 0 says START and nobody listens any more.
"""

from __future__ import annotations

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
    """Meet the other ranks; return the links between them.

    Parameters
    ----------
    config : TcpConfig
        Which rank this is and where rank 0 is. A worker waits for rank 0 for at most
        ``connect_timeout_ms``, and for the others as long as rank 0 does.
    star_bytes : int
        Largest payload that goes through rank 0; rank 0's value is told to all.
    listener : socket, optional
        Where rank 0 listens, instead of opening one; it is closed in any case.
    far_star_bytes : int, optional
        Instead of ``star_bytes``, if the ranks are on several machines.

    Raises
    ------
    InitializationFailed
        If the ranks do not meet; no socket is left open then.
    """
    if config.size == 1:
        if listener is not None:
            listener.close()
        return Links([None], [None], star_bytes=star_bytes)
    try:
        participant: Participant
        if config.rank == 0:
            participant = Coordinator(config, star_bytes, far_star_bytes, listener)
        else:
            participant = Worker(config)
        with participant:
            participant.meet()
        return participant.links
    except OSError as error:
        raise InitializationFailed("tcp", error) from error
