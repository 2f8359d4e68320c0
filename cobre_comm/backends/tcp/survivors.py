"""What a survivor knows about other survivors: links, ports, answers, why a rank is missing."""

from __future__ import annotations

import math
import socket
from collections.abc import Collection
from typing import NamedTuple

from cobre_comm.backends.shrink import Council
from cobre_comm.backends.tcp import callers as ports
from cobre_comm.backends.tcp.callers import Callers, Gone, Unreachable
from cobre_comm.backends.tcp.rendezvous.event_loop import Task, TaskLoop
from cobre_comm.backends.tcp.spec import TCP
from cobre_comm.config import TcpConfig
from cobre_comm.errors import named
from cobre_comm.reports.launcher import given

SILENT_S = 8.0  # after this time it is known whether a machine answers
GRACE_S = 2.0  # how much longer a rank waits than a rank that knows who is missing
NO_CHAIR = -1
GOES_ON, TIME_OVER, TOO_SMALL = range(3)  # values of the first byte of a roll


class Answer(NamedTuple):
    """The answer of a rank to a call: its row, or the roll that it holds."""

    call: int  # the number of the call
    content: bytes  # the row of the rank; or a roll, if ``chair`` is a rank
    chair: int = NO_CHAIR  # the rank that made the roll, or took it over from a member


class Survivors(Council):
    """The survivors of the ranks of several nodes, as one of these survivors knows them."""

    def __init__(self, config: TcpConfig, callers: Callers) -> None:
        limit_s = config.timeout_s + SILENT_S if config.timeout_s else math.inf
        super().__init__(config.rank, config.size, limit_s, given(TCP.timeout_variable))
        self.config, self.callers = config, callers
        self.loop = TaskLoop()
        self.links: dict[int, socket.socket] = {}  # by rank: to chairs; on a chair, to members
        self.gone: set[int] = set()
        self.unreachable: set[int] = set()
        self.overdue: set[int] = set()  # chairs that have not decided in time
        self.own = Answer(0, b"")
        self.before = b""  # the roll of the call before
        self.until = math.inf  # when the time of this call is over

    def watch(self, rank: int, until: float = math.inf) -> Task[None]:
        """Note when the port of a rank is closed, or its machine does not answer."""
        try:
            yield from ports.watch(self.callers.endpoints[rank], until)
        except Gone:
            self.gone.add(rank)
        except Unreachable:
            self.cannot_reach(rank)

    def cannot_reach(self, rank: int) -> None:
        """Note that the machine of a rank does not answer: no rank on it can be reached."""
        endpoints = self.callers.endpoints
        host = endpoints[rank].sockaddr[0]
        self.unreachable.update(r for r in self.members if endpoints[r].sockaddr[0] == host)
        self.unreachable.discard(self.rank)

    def drop(self, rank: int) -> None:
        """Close the link to a member or a chair; the port of that rank says whether it lives."""
        if rank in self.links:
            self.links.pop(rank).close()

    def too_small(self, missing: Collection[int], count: int) -> str:
        """Return why ``count`` ranks do not continue without the missing ranks."""
        are = "are" if len(missing) > 1 else "is"
        return (
            f"{named(missing)} {are} lost or cannot be reached, and the {count} that can are "
            f"not more than half of {self.size}, nor half of them with rank 0; the others may go on"
        )

    def left_out(self) -> str:
        """Return why this rank does not continue."""
        return f"rank {self.rank} could not be reached for a while; the others may go on without it"
