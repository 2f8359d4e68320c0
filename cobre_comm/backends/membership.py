"""The membership of a rank, which a backend's ``meet`` returns after the rendezvous.

``kernel_backend.py`` makes a communicator of the membership. ``KernelBackend`` uses the shared
memory of a node, and the transport between nodes, only as the protocols of this file describe them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from cobre_kernels.machine.record import View
from numpy.typing import NDArray

from cobre_comm.backends.agreement import Group
from cobre_comm.backends.bodies import Bodies
from cobre_comm.backends.shrink import Council
from cobre_comm.contract.shared_region import Lengths
from cobre_comm.system.cpus import Place


class NodeSegment(Protocol):
    """The segment of a node, to which this rank is attached."""

    def describe(self, comm: View) -> None:
        """Write what kernels read about the node and its segment into a communicator's record."""

    def first_journal(self) -> int:
        """Return the address of the journal of the first rank of this node."""

    def map_region(
        self, group: Group, shape: Lengths, dtype: np.dtype[Any], leader: int, placement: str
    ) -> NDArray[Any]:
        """Return an array of zeros that the ranks of a node share; if one rank fails, all raise."""

    def places(self) -> list[Place]:
        """Return where each rank of this node may run, if this process can see that."""

    def convene(self, variable: str) -> Council:
        """Return the survivors of this node's ranks, as a council that agrees in the segment.

        ``variable`` is the environment variable that raises the limit of the council's waits.
        """

    def say_goodbye(self, comm: View) -> None:
        """Tell the ranks of this node that this rank closes."""

    def close(self) -> None:
        """Show other ranks that this rank has gone; the last rank that closes frees the memory."""


class NodesRecords(Protocol):
    """The records that kernels need to work on several nodes."""

    def say_goodbye(self) -> None:
        """As a leader, tell the other leaders that this leader closes."""


class Transport(Protocol):
    """The transport between the leaders of several nodes, with the links that it holds open."""

    def begin(self, comm: View, words: NDArray[np.int64], attachment: NodeSegment) -> NodesRecords:
        """Make the records of a communicator over several nodes.

        ``words`` is the memory of the communicator's record.
        """

    @property
    def pids(self) -> Mapping[int, int]:
        """Process ids by rank, of the ranks that have a journal in memory of their own."""

    def let_go(self, guard: int) -> None:
        """Close what may be closed if this was the guard's last state; idempotent, even forked."""


class Node(NamedTuple):
    """A node: the name of its host, its ranks in ascending order, and where each may run."""

    host: str
    ranks: tuple[int, ...]
    places: Sequence[Place]


@dataclass(frozen=True)
class Membership:
    """What a rank has found out at the rendezvous: ranks and nodes, and what connects them."""

    rank: int
    size: int
    here: Sequence[int]  # the ranks of this node, ascending; the first is the leader
    nodes: int
    bodies: Bodies  # the kernels that the collectives run
    shares: bool  # whether the ranks of a node share one copy of a region
    # None if this rank is not attached: it shares memory with no other rank, or has closed.
    attachment: NodeSegment | None = None
    transport: Transport | None = None  # None if no rank needs a transport
    every_node: Sequence[Node] = ()  # all nodes, if there are several nodes

    @property
    def leader(self) -> int:
        """The first rank of this node."""
        return self.here[0]


def alone(rank: int, size: int, bodies: Bodies) -> Membership:
    """Return the membership of a rank that has met no other rank, as if all nodes had one rank."""
    return Membership(rank, size, (rank,), size, bodies, shares=False)
