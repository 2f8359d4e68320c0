"""Which ranks share a node, and the order of ranks that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from cobre_comm.common.cores import core_numbers, quota_cores

if TYPE_CHECKING:
    from mpi4py import MPI


@dataclass(frozen=True)
class NodeOrder:
    """The ranks of a communicator, node by node; nodes are in the order of their first ranks.

    Parameters
    ----------
    order : ndarray of int64, shape (size,)
        The ranks of node 0 ascending, then those of node 1, and so on.
    starts : ndarray of int64, shape (nodes + 1,)
        Where each node begins in ``order``.
    node : int
        Which node this rank is on.
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    node: int

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.starts) - 1

    @property
    def here(self) -> NDArray[np.int64]:
        """The ranks of this node."""
        return self.order[self.starts[self.node] : self.starts[self.node + 1]]

    @property
    def leader(self) -> int:
        """The first rank of this node."""
        return int(self.here[0])

    @property
    def is_flat(self) -> bool:
        """Whether every rank has a node of its own."""
        return self.nodes == len(self.order)


def split_by_node(world: MPI.Intracomm, pretend: Sequence[int]) -> tuple[MPI.Intracomm, bool]:
    """Return the communicator of the ranks that share memory with this one, in rank order.

    With it comes whether each rank of the machine has a core.
    """
    from mpi4py import MPI

    node = cast(MPI.Intracomm, world.Split_type(MPI.COMM_TYPE_SHARED, key=world.rank))
    has_room = node.size <= min(_cores_of(node), quota_cores())
    if not pretend:
        return node, has_room
    pretended = cast(MPI.Intracomm, node.Split(pretend[world.rank % len(pretend)], key=world.rank))
    node.Free()
    return pretended, has_room


def node_order_of(world: MPI.Intracomm, node: MPI.Intracomm) -> NodeOrder:
    """Return the node order of ``world``, on every rank; collective."""
    leader = np.array([world.rank], dtype=np.int64)
    node.Bcast(leader, root=0)
    leaders = np.empty(world.size, dtype=np.int64)
    world.Allgather(leader, leaders)
    order = np.lexsort((np.arange(world.size), leaders)).astype(np.int64)
    firsts, counts = np.unique(leaders, return_counts=True)
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return NodeOrder(order, starts, int(np.searchsorted(firsts, leader[0])))


def _cores_of(node: MPI.Intracomm) -> int:
    """Count the cores that the ranks of a node may use together; collective over ``node``.

    An mpiexec may bind each rank to a core of its own, or all of them to one core.
    """
    return len(set().union(*node.allgather(core_numbers())))
