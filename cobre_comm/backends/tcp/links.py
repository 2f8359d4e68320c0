"""The links of a rank: a table of them, and the rule which rank opens which link."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from cobre_kernels.tcp import tags

from cobre_comm.backends.tcp.process import pid_of, watch

MIN_RTT_AT = 148  # tcpi_min_rtt in a struct tcp_info of Linux, 4.9 or later
UNKNOWN_US = 2**31 - 1  # counts as a very long round trip, with which hops do not pay


def round_trip_us(sock: socket.socket) -> int:
    """Return the shortest round trip of a link, as the system has measured it so far.

    The system has measured at least the link's first packets, which systems answer by themselves.
    """
    if sys.platform != "linux":
        return UNKNOWN_US
    told = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, MIN_RTT_AT + 4)
    return int.from_bytes(told[MIN_RTT_AT:], sys.byteorder) if told[MIN_RTT_AT:] else UNKNOWN_US


@dataclass
class Links:
    """The connected sockets of a rank, all non-blocking; each mapping is by rank."""

    # Between rank 0 and every other rank, and between every two leaders of a lane.
    control: dict[int, socket.socket] = field(default_factory=dict)
    # Between every two leaders of a lane.
    data: dict[int, socket.socket] = field(default_factory=dict)
    # For some ranks: a descriptor that is readable when the process of that rank has ended.
    processes: dict[int, int] = field(default_factory=dict)
    pids: dict[int, int] = field(default_factory=dict)  # the process ids of the same ranks
    ranks_here: int = 1  # how many ranks of the job run on this machine, this rank included
    eager_bytes: int = 0  # the value that rank 0 has chosen
    round_trip_us: int = 0  # the longest round trip of all links of leaders; the same on all ranks
    # For each leader, and maybe other ranks: the socket address, with any port, at which this rank
    # has reached that rank. For this rank itself, the address at which it has listened, if it has.
    where: dict[int, tuple[Any, ...]] = field(default_factory=dict)

    def put(self, peer: int, purpose: int, sock: socket.socket) -> None:
        """Enter a link to a peer."""
        (self.control if purpose == tags.CONTROL else self.data)[peer] = sock

    def watch(self, peer: int, process: bytes) -> None:
        """Watch the process of a peer by its identity, if the system can do that."""
        descriptor = watch(process)
        if descriptor is not None:
            self.processes[peer] = descriptor
            self.pids[peer] = pid_of(process)

    def longest_round_trip_us(self) -> int:
        """Return the longest round trip to another leader, by the faster of the two links to it."""
        both = [(link, self.control[peer]) for peer, link in self.data.items()]
        return max((min(map(round_trip_us, links)) for links in both), default=0)

    def keep_only(self, ranks: Collection[int]) -> None:
        """Close the links to all other ranks, and stop watching the processes of those ranks.

        The program may have closed one of the sockets itself; then the others are closed all the
        same.
        """
        for sockets in (self.control, self.data):
            for peer in set(sockets).difference(ranks):
                with contextlib.suppress(OSError):
                    sockets.pop(peer).close()
        for peer in set(self.processes).difference(ranks):
            with contextlib.suppress(OSError):
                os.close(self.processes.pop(peer))

    def close(self) -> None:
        """Close every socket, and stop watching processes."""
        self.keep_only(())


def _purposes(lower: int) -> tuple[int, ...]:
    """Return the purposes of the links between two leaders; ``lower`` is the lower of the two."""
    return (tags.DATA,) if lower == 0 else (tags.CONTROL, tags.DATA)


def accepted_by(rank: int, leaders: Collection[int]) -> set[tuple[int, int]]:
    """Return (peer, purpose) of the links that a leader accepts: links to higher leaders.

    Rank 0 has its control links already.
    """
    return {(peer, purpose) for peer in leaders if peer > rank for purpose in _purposes(rank)}


def opened_by(rank: int, leaders: Collection[int]) -> list[tuple[int, int]]:
    """Return (peer, purpose) of the links that a leader opens: links to lower leaders."""
    return [(peer, purpose) for peer in leaders if peer < rank for purpose in _purposes(peer)]
