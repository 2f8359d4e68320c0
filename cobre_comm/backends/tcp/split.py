"""The rendezvous of the ranks of one color, which the parent arranges.

If all ranks of the parent are one node, the parts need no rendezvous. Otherwise the first rank of a
color listens at a free port, at the address where it listened for the parent. The parent's
collectives carry this port and a fresh random token. The other ranks reach that rank at the address
where they have reached it before. So a firewall has to allow nothing new except free ports.
"""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from cobre_comm.backends.agreement import Group
from cobre_comm.backends.nodes.configs import nodes_of_part
from cobre_comm.backends.split import Part
from cobre_comm.backends.tcp.rendezvous.sockets import listen_at_host
from cobre_comm.config import TcpConfig

TOKEN_WORDS = 4
NOWHERE = "-"  # stands for a coordinator that is not known yet

Where = Mapping[int, tuple[Any, ...]]  # by rank: a socket address with any port


class Meeting(NamedTuple):
    """What the rendezvous of a split has in addition to that of a new job."""

    listener: socket.socket | None = None  # where rank 0 listens; if None, rank 0 opens a listener
    # Every rank calls this again and again; an exception in it ends the rendezvous.
    meanwhile: Callable[[], None] | None = None


NEW_JOB = Meeting()


@contextlib.contextmanager
def opened_listener(part: Part, where: Where) -> Iterator[tuple[socket.socket | None, str]]:
    """Open the listener of a part on its first rank; yield the listener, and a problem or ""."""
    listener, problem = None, ""
    try:
        if part.has_color and part.rank == 0 and part.size > 1:
            listener = listen_at_host(where.get(part.leader))
    except OSError as error:
        problem = f"cannot listen for the ranks of its color: {error}"
    with contextlib.closing(listener) if listener else contextlib.nullcontext():
        yield listener, problem


def config_of_part(
    config: TcpConfig, part: Part, buffer_bytes: int | None, spin_us: float
) -> TcpConfig:
    """Return a part's configuration: each rank has buffers and spins as in the parent.

    If the parent is one node, and one of its ranks has color None, buffers of more than
    LARGEST_BUFFER_BYTES shrink to that size (``attach_nowhere``).
    """
    return dataclasses.replace(
        config,
        rank=part.rank,
        size=part.size,
        pretend_nodes=nodes_of_part(config.pretend_nodes, part),
        buffer_bytes=buffer_bytes,
        spin_us=spin_us,
        coordinator=NOWHERE,
    )


def arranged(
    group: Group, part: Part, config: TcpConfig, where: Where, listener: socket.socket | None
) -> TcpConfig:
    """Return the configuration with host, port and token of the part's first rank; collective."""
    offer = np.zeros(1 + TOKEN_WORDS, dtype=np.int64)
    if listener is not None:
        offer[0] = listener.getsockname()[1]
        offer[1:] = np.frombuffer(secrets.token_bytes(offer[1:].nbytes), dtype=np.int64)
    port, *token = group.gather_rows(offer)[part.leader]
    return dataclasses.replace(
        config,
        coordinator=_host(where[part.leader]) if part.rank else None,
        port=int(port),
        token=np.array(token).tobytes().hex(),
    )


def _host(sockaddr: tuple[Any, ...]) -> str:
    """Return the host of a socket address; if it is link-local, together with its scope."""
    scope = sockaddr[3] if len(sockaddr) == 4 else 0
    return f"{sockaddr[0]}%{scope}" if scope else str(sockaddr[0])
