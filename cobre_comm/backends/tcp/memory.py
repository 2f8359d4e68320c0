"""The verbs over sockets, and the private memory of a leader's links: a record and buffers."""

from __future__ import annotations

import socket
from typing import Any

import numpy as np
from cobre_kernels.collective.seeing.journal import RAISED_BYTES
from cobre_kernels.machine.record import WORD_BYTES, View
from cobre_kernels.tcp import chain, exchange, hops, ring
from cobre_kernels.tcp import links as records
from cobre_kernels.tcp.frame import CONTROL_MESSAGE, FRAME_HEADER_BYTES
from cobre_kernels.tcp.progress import control, neighbours, waiting
from numpy.typing import NDArray

from cobre_comm.backends.membership import NodeSegment
from cobre_comm.backends.nodes.memory import NodesMemory, Verbs
from cobre_comm.backends.nodes.node_order import NodeOrder
from cobre_comm.backends.tcp.callers import Callers
from cobre_comm.backends.tcp.links import Links
from cobre_comm.backends.wait_times import wait_for_leaders
from cobre_comm.config import TcpConfig
from cobre_comm.errors import InitializationFailed

MESSAGE_US = 3.0  # the time that a leader takes to send, or to receive, one message

VERBS = Verbs(
    exchange=exchange.exchange_kernel,
    allgatherv=ring.allgatherv_kernel,
    broadcast=ring.broadcast_kernel,
    alltoallv=exchange.alltoallv_kernel,
    post=control.post_kernel,
    read=control.read_kernel,
    block=waiting.block_kernel,
    chain=chain.chain_kernel,
    sees_bytes=True,
)


class SocketTransport:
    """Sockets as a transport: the links of a leader to other leaders. A follower has no links.

    ``half_bytes`` is the size of half a staging buffer, on every node.
    """

    def __init__(self, config: TcpConfig, order: NodeOrder, links: Links, half_bytes: int) -> None:
        self.links = links
        self.callers: Callers | None = None  # None until the ranks have exchanged their ports
        self._config, self._order, self._half_bytes = config, order, half_bytes

    def begin(self, comm: View, words: NDArray[np.int64], attachment: NodeSegment) -> NodesMemory:
        """Make the records of a communicator; see :class:`~..membership.Transport`."""
        links, order = self.links, self._order
        memory = NodesMemory(comm, words, order, VERBS)
        attachment.describe(comm)
        memory.use_staging_buffer(self._half_bytes)
        try:
            comm.links = link_record(memory, links, order)
            if pays(order.nodes, links.round_trip_us):
                go_by_hops(memory, comm.links)
        except MemoryError as error:
            links.close()
            raise InitializationFailed("tcp", f"no memory for eager_bytes: {error}") from error
        if order.is_flat:
            wait_for_leaders(comm, links.ranks_here, self._config.spin_us)
        memory.nodes.eager_bytes = links.eager_bytes
        return memory

    @property
    def where(self) -> dict[int, tuple[Any, ...]]:
        """Socket addresses by rank, as in ``Links.where``; of a follower, its leader's address."""
        found, order = self.links.where, self._order
        leaders = np.repeat(order.leaders(), np.diff(order.starts))
        pairs = zip(order.order.tolist(), leaders.tolist(), strict=True)
        return {rank: found[leader] for rank, leader in pairs if leader in found} | found

    @property
    def pids(self) -> dict[int, int]:
        """Process ids by rank, for the ranks that are alone on their nodes."""
        order = self._order
        alone = set(order.leaders()[np.diff(order.starts) == 1].tolist())
        return {rank: pid for rank, pid in self.links.pids.items() if rank in alone}

    def let_go(self, guard: int) -> None:
        """Close the sockets, also in a forked child, which would keep the links open."""
        self.links.close()
        if self.callers is not None:
            self.callers.close()


def link_record(memory: NodesMemory, sockets: Links, node_order: NodeOrder) -> View:
    """Return the record by which kernels use the links; it exists as long as ``memory``."""
    size, nodes, own = len(node_order.order), node_order.nodes, node_order.node
    links = memory.record(records.LINKS, nodes)
    links.transfer = exchange.transfer_kernel.address
    links.advance = neighbours.advance_kernel.address
    links.eager_bytes = sockets.eager_bytes
    links.staging = memory.room(
        max(records.STAGING_CHUNKS * records.CHUNK_BYTES, sockets.eager_bytes)
    )
    links.polls = memory.room((3 * nodes + 2) * records.POLL.size_bytes)
    links.blocks = memory.room(nodes * records.BLOCK.size_bytes)
    words_bytes = max(size * WORD_BYTES, RAISED_BYTES)
    links.message_out = memory.room(CONTROL_MESSAGE.size_bytes + words_bytes)
    links.words_out = int(links.message_out) + CONTROL_MESSAGE.size_bytes
    links.words_in = memory.room(words_bytes)
    links.msghdr.vectors = links.msghdr.gathered.address
    links.next, links.previous = links.peers[(own + 1) % nodes], links.peers[(own - 1) % nodes]
    for node, rank in enumerate(node_order.leaders(node_order.lane)):
        peer = links.peers[node]
        peer.control_fd = _descriptor(sockets.control.get(rank))
        peer.data_fd = _descriptor(sockets.data.get(rank))
        peer.process_fd = sockets.processes.get(rank, records.NO_LINK)
    return links


def pays(nodes: int, round_trip_us: int) -> bool:
    """Tell whether hops take less time than a message from each leader to each other leader.

    A hop takes half a round trip, and a system call. Without hops a leader spends its time on
    sending one message to each other leader, and on receiving one from each.
    docs/design/tcp-protocol.md has the formula, and says where its constant is from.
    """
    hop_us = max(round_trip_us / 2, MESSAGE_US) + MESSAGE_US
    return (nodes - 1).bit_length() * hop_us < 2 * (nodes - 1) * MESSAGE_US


def go_by_hops(memory: NodesMemory, links: View) -> None:
    """Let the verb exchange go by hops, with room for the messages of all leaders."""
    nodes = memory.nodes.nodes
    most_bytes = FRAME_HEADER_BYTES + links.eager_bytes + WORD_BYTES  # of a message in a bundle
    links.bundle = memory.room(nodes * most_bytes)
    links.ends = memory.room(nodes * WORD_BYTES)
    memory.nodes.exchange = hops.exchange_by_hops_kernel.address


def _descriptor(link: socket.socket | None) -> int:
    return records.NO_LINK if link is None else link.fileno()
