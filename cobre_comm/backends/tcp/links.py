"""The links of a rank: their table, and which rank opens which."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

from cobre_kernels.tcp import tags

from cobre_comm.backends.tcp.process import pid_of, watch


@dataclass
class Links:
    """The connected sockets of a rank, all non-blocking.

    Parameters
    ----------
    control : list of socket or None
        By rank; None for oneself. One link for each pair of ranks.
    star : list of socket or None
        By rank. Rank 0 has one to every other, the others one to rank 0.
    ring_out, ring_in : socket or None
        One way, to the next rank and from the previous one; None if there is one rank only.
    processes : dict of int
        By rank: a descriptor that is readable once its process has ended, where there is one.
    pids : dict of int
        By rank: its process id, of the same ranks.
    ranks_here : int
        How many ranks of the job run on this machine, this one included.
    star_bytes : int
        Rank 0's value.
    """

    control: list[socket.socket | None]
    star: list[socket.socket | None]
    ring_out: socket.socket | None = None
    ring_in: socket.socket | None = None
    processes: dict[int, int] = field(default_factory=dict)
    pids: dict[int, int] = field(default_factory=dict)
    ranks_here: int = 1
    star_bytes: int = 0

    def put(self, peer: int, purpose: int, sock: socket.socket, *, accepted: bool) -> None:
        """Enter a link to a peer; the end of a ring link depends on which rank has accepted it."""
        if purpose == tags.CONTROL:
            self.control[peer] = sock
        elif purpose == tags.STAR:
            self.star[peer] = sock
        elif accepted == (purpose == tags.RING_DOWN):
            self.ring_out = sock
        else:
            self.ring_in = sock

    def watch(self, peer: int, process: bytes) -> None:
        """Watch the process of a peer, given its identity, if there is a way."""
        descriptor = watch(process)
        if descriptor is not None:
            self.processes[peer] = descriptor
            self.pids[peer] = pid_of(process)

    def close(self) -> None:
        """Close every socket, and watch no process any more.

        A program may have closed some of them behind our back: the others are closed all the same.
        """
        for sock in (*self.control, *self.star, self.ring_out, self.ring_in):
            if sock is not None:
                with contextlib.suppress(OSError):
                    sock.close()
        while self.processes:
            with contextlib.suppress(OSError):
                os.close(self.processes.popitem()[1])


def purposes_between(lower: int, higher: int, size: int) -> Iterator[int]:
    """Yield the purposes of the links between two ranks; the higher one opens them."""
    yield tags.CONTROL
    if lower == 0:
        yield tags.STAR
    if higher == lower + 1:
        yield tags.RING_DOWN
    if lower == 0 and higher == size - 1:
        yield tags.RING_UP


def accepted_by(rank: int, size: int) -> set[tuple[int, int]]:
    """Return (peer, purpose) of the links that a rank accepts."""
    return {
        (peer, purpose)
        for peer in range(rank + 1, size)
        for purpose in purposes_between(rank, peer, size)
    }


def opened_by(rank: int, size: int) -> list[tuple[int, int]]:
    """Return (peer, purpose) of the links that a rank opens, its control link to rank 0 first."""
    return [
        (peer, purpose) for peer in range(rank) for purpose in purposes_between(peer, rank, size)
    ]
