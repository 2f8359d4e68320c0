"""Which ranks share a node, and the order of ranks that follows from it."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cobre_comm.backends.agreement import Group
from cobre_comm.backends.membership import Node
from cobre_comm.errors import runs
from cobre_comm.system.cpus import Place, parse_cpus, place_of

HOST_BYTES = 64  # the longest name of a host in Linux
LIST_BYTES = 48  # the longest text of a list of CPUs, or of NUMA nodes
_LIST = re.compile(rb"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*")


@dataclass(frozen=True)
class NodeOrder:
    """The ranks of a communicator, ordered by node; nodes are ordered by their first ranks."""

    # Shape (size,): the ranks of node 0 ascending, then the ranks of node 1, and so on.
    order: NDArray[np.int64]
    starts: NDArray[np.int64]  # shape (nodes + 1,): where each node begins in ``order``
    node: int  # the node of this rank
    rank: int
    lanes: int = 1  # in how many lanes the nodes have leaders (``cobre_kernels/nodes/lanes.py``)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.starts) - 1

    @property
    def here(self) -> NDArray[np.int64]:
        """The ranks of this node."""
        return self.order[self.starts[self.node] : self.starts[self.node + 1]]

    @property
    def is_flat(self) -> bool:
        """Whether every rank has a node of its own."""
        return self.nodes == len(self.order)

    @property
    def has_lane(self) -> bool:
        """Whether this rank leads its node in a lane."""
        return self.rank in self.here[: self.lanes]

    @property
    def lane(self) -> int:
        """The lane in which this rank leads its node; 0 for a rank that leads in no lane."""
        return self.here.tolist().index(self.rank) if self.has_lane else 0

    @property
    def narrowest(self) -> int:
        """The number of ranks of the node that has the fewest."""
        return int(np.diff(self.starts).min())

    def leaders(self, lane: int = 0) -> NDArray[np.int64]:
        """Return, for each node, the rank that leads it in a lane; in lane 0, its first rank."""
        return self.order[self.starts[:-1] + lane]


def node_order_of(leaders: ArrayLike, rank: int) -> NodeOrder:
    """Return the node order, as ``rank`` sees it.

    ``leaders`` has, for each rank, the first rank of its node.
    """
    of = np.asarray(leaders, dtype=np.int64)
    order = np.argsort(of, kind="stable").astype(np.int64)
    firsts, counts = np.unique(of, return_counts=True)
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return NodeOrder(order, starts, int(np.searchsorted(firsts, of[rank])), rank)


def name_nodes(group: Group, order: NodeOrder) -> list[Node]:
    """Tell all ranks each node's host and ranks, and where the ranks may run; collective."""
    host = socket.gethostname().encode(errors="replace")[:HOST_BYTES].ljust(HOST_BYTES, b"\0")
    own = host + b"".join(_listed(numbers) for numbers in place_of())
    rows = [row.tobytes() for row in group.gather_rows(np.frombuffer(own, dtype=np.uint8))]
    hosts = [row[:HOST_BYTES].rstrip(b"\0").decode(errors="replace") for row in rows]
    places = [
        Place(*map(_numbers, (row[HOST_BYTES:-LIST_BYTES], row[-LIST_BYTES:]))) for row in rows
    ]
    nodes = [ranks.tolist() for ranks in np.split(order.order, order.starts[1:-1])]
    return [Node(hosts[here[0]], tuple(here), [places[rank] for rank in here]) for here in nodes]


def _listed(numbers: Iterable[int]) -> bytes:
    """Return a list of numbers as LIST_BYTES bytes; only zeros if the list is too long."""
    text = ",".join(runs(numbers)).encode()
    return (text if len(text) <= LIST_BYTES else b"").ljust(LIST_BYTES, b"\0")


def _numbers(listed: bytes) -> tuple[int, ...]:
    """Return the numbers in a peer's list; none if the bytes are no list."""
    text = listed.rstrip(b"\0")
    return tuple(parse_cpus(text.decode())) if _LIST.fullmatch(text) else ()
