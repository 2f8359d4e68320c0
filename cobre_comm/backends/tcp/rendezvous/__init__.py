"""How the ranks of a tcp job find each other and open the links between them.

``protocol.py`` is the theory of operation: states, messages and time limits. ``coordinator.py`` is
rank 0's part, ``worker.py`` that of every other rank; the other modules are what both stand on.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator

from cobre_comm.backends.tcp.links import Links
from cobre_comm.backends.tcp.rendezvous.coordinator import Coordinator
from cobre_comm.backends.tcp.rendezvous.participant import Participant
from cobre_comm.backends.tcp.rendezvous.worker import Worker
from cobre_comm.config import TcpConfig
from cobre_comm.errors import InitializationFailed

__all__ = ["Links", "Participant", "meet", "rendezvous"]


@contextlib.contextmanager
def meet(
    config: TcpConfig,
    eager_bytes: int,
    listener: socket.socket | None = None,
    *,
    far_eager_bytes: int | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> Iterator[Participant]:
    """Attach all ranks to rank 0; in the block they exchange what they need, and link.

    Outside of the block no rank listens. The links stay, unless it raises: then no socket is left
    open, and the other ranks are told why.

    Parameters
    ----------
    config : TcpConfig
        This rank, and where rank 0 is. A worker waits for rank 0 for at most
        ``connect_timeout_ms``, and for the other workers as long as rank 0 does.
    eager_bytes : int
        Largest payload of a node that travels behind its header; rank 0's value holds for all.
    listener : socket, optional
        Where rank 0 listens, instead of opening one; it is closed in any case.
    far_eager_bytes : int, optional
        Holds instead of ``eager_bytes`` if the ranks are on several machines.
    meanwhile : callable, optional
        Called every ``LOOK_S``; what it raises ends the rendezvous.

    Raises
    ------
    InitializationFailed
        If ranks are missing, refused or lost.
    """
    participant = (
        Coordinator(config, eager_bytes, far_eager_bytes, listener)
        if config.rank == 0
        else Worker(config)
    )
    try:
        with contextlib.closing(participant):
            try:
                participant.meanwhile = meanwhile
                participant.attach()
                participant.links.where = participant.where()
                yield participant
            except InitializationFailed as error:
                participant.refuse(error)
                raise
    except OSError as error:
        participant.links.close()
        raise InitializationFailed("tcp", error) from error
    except BaseException:
        participant.links.close()
        raise


def rendezvous(
    config: TcpConfig,
    eager_bytes: int,
    listener: socket.socket | None = None,
    *,
    far_eager_bytes: int | None = None,
) -> Links:
    """Find the other ranks as :func:`meet` does, and link to all of them."""
    if config.size == 1:
        if listener is not None:
            listener.close()
        return Links(eager_bytes=eager_bytes)
    with meet(config, eager_bytes, listener, far_eager_bytes=far_eager_bytes) as participant:
        participant.start(range(config.size))
    return participant.links
