"""How the ranks of a tcp job find each other and open the links between them.

``protocol.py`` is the theory of operation: states, messages and time limits. ``coordinator.py`` is
the code of rank 0, and ``worker.py`` that of every other rank; both use the other modules.
``_check_proof`` in ``handshake.py`` checks that the other end of a connection knows the token.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator

from cobre_comm.backends.tcp.rendezvous.coordinator import Coordinator
from cobre_comm.backends.tcp.rendezvous.participant import Participant
from cobre_comm.backends.tcp.rendezvous.worker import Joiner
from cobre_comm.config import TcpConfig
from cobre_comm.errors import InitializationFailed

__all__ = ["Participant", "meet"]


@contextlib.contextmanager
def meet(
    config: TcpConfig,
    listener: socket.socket | None = None,
    meanwhile: Callable[[], None] | None = None,
    *,
    listens: bool = False,
) -> Iterator[Participant]:
    """Attach all ranks to rank 0; inside the ``with`` block they exchange parts, and link.

    After the block no rank listens any more, and the links stay. If the block raises, all sockets
    are closed, and the other ranks are told why.

    A worker waits for rank 0 for at most ``connect_timeout_ms``, and for the other workers as long
    as rank 0 waits for them. ``InitializationFailed`` is raised if ranks are missing, refused or
    lost. If rank 0 gets a ``listener``, it does not open another listener; the listener is closed
    in any case. ``meanwhile`` is called every ``LOOK_S``; an exception of ``meanwhile`` ends the
    rendezvous. ``listens`` says that rank 0 listens already, so a worker gives up at once
    if it finds no listener.
    """
    if config.rank == 0:
        participant: Participant = Coordinator(config, listener)
    else:
        participant = Joiner(config, listens=listens)
    try:
        with contextlib.closing(participant):
            try:
                participant.meanwhile = meanwhile
                participant.attach()
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
