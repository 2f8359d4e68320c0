"""The verbs over sockets, and the private memory of a leader's links: their record, and buffers."""

from __future__ import annotations

import socket

from cobre_kernels.collective.seeing.journal import RAISED_BYTES
from cobre_kernels.machine.record import WORD_BYTES, View
from cobre_kernels.tcp import chain, messages, ring
from cobre_kernels.tcp import links as records
from cobre_kernels.tcp.frame import CONTROL_MESSAGE
from cobre_kernels.tcp.progress import control, neighbours, waiting

from cobre_comm.backends.nodes.memory import NodesMemory, Verbs
from cobre_comm.backends.nodes.node_order import NodeOrder
from cobre_comm.backends.tcp.links import Links

VERBS = Verbs(
    exchange=messages.exchange_kernel,
    allgatherv=ring.allgatherv_kernel,
    broadcast=ring.broadcast_kernel,
    alltoallv=messages.alltoallv_kernel,
    report=control.report_kernel,
    goodbye=control.goodbye_kernel,
    waits=waiting.KERNELS,
    chain=chain.chain_kernel,
    helpers=(messages.transfer_kernel, neighbours.advance_kernel),
)


def link_record(memory: NodesMemory, sockets: Links, node_order: NodeOrder) -> View:
    """Return the record by which kernels use the links; it lives as long as the memory.

    Parameters
    ----------
    memory : NodesMemory
        Of the communicator.
    sockets : Links
        The connected sockets.
    node_order : NodeOrder
        Which ranks are where.
    """
    size, nodes, own = len(node_order.order), node_order.nodes, node_order.node
    links = memory.record(records.LINKS, nodes)
    links.transfer = messages.transfer_kernel.address
    links.advance = neighbours.advance_kernel.address
    links.eager_bytes = sockets.eager_bytes
    links.staging = memory.room(
        max(records.STAGING_CHUNKS * records.CHUNK_BYTES, sockets.eager_bytes)
    )
    links.polls = memory.room((3 * nodes + 2) * records.POLL.size_bytes)
    links.blocks = memory.room(nodes * records.BLOCK.size_bytes)
    links.reported = memory.room(size * WORD_BYTES)
    links.report = memory.room(CONTROL_MESSAGE.size_bytes + size * WORD_BYTES)
    links.report_rows = int(links.report) + CONTROL_MESSAGE.size_bytes
    links.raised = memory.room(CONTROL_MESSAGE.size_bytes + RAISED_BYTES)
    links.raised_words = int(links.raised) + CONTROL_MESSAGE.size_bytes
    links.msghdr.vectors = links.msghdr.gathered.address
    links.next, links.previous = links.peers[(own + 1) % nodes], links.peers[(own - 1) % nodes]
    for node, rank in enumerate(node_order.leaders):
        peer = links.peers[node]
        peer.control_fd = _descriptor(sockets.control.get(rank))
        peer.data_fd = _descriptor(sockets.data.get(rank))
        peer.process_fd = sockets.processes.get(rank, records.NO_LINK)
    return links


def _descriptor(link: socket.socket | None) -> int:
    return records.NO_LINK if link is None else link.fileno()
