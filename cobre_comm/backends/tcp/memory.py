"""The private memory of a leader's links: their record, and buffers."""

from __future__ import annotations

import socket
from typing import Any

import numpy as np
from cobre_kernels.machine.record import WORD_BYTES, Record
from cobre_kernels.tcp import links as records
from cobre_kernels.tcp.frame import CONTROL_MESSAGE
from cobre_kernels.tcp.messages import transfer_kernel
from cobre_kernels.tcp.progress.neighbours import advance_kernel
from numpy.typing import NDArray

from cobre_comm.backends.nodes.node_order import NodeOrder
from cobre_comm.backends.tcp.links import Links


class LinkMemory:
    """The records by which kernels use the links; keep them as long as kernels may run.

    Parameters
    ----------
    sockets : Links
        The connected sockets.
    node_order : NodeOrder
        Which ranks are where; this one is the leader of its node.

    Attributes
    ----------
    links : View
        The record.
    """

    def __init__(self, sockets: Links, node_order: NodeOrder) -> None:
        size, nodes, own = len(node_order.order), node_order.nodes, node_order.node
        self._arrays: list[NDArray[Any]] = [records.LINKS.array(nodes)]
        self.links = links = records.LINKS.of(self._arrays[0])
        links.transfer, links.advance = transfer_kernel.address, advance_kernel.address
        links.eager_bytes = sockets.eager_bytes
        links.staging = self._buffer(
            max(records.STAGING_CHUNKS * records.CHUNK_BYTES, sockets.eager_bytes)
        )
        links.polls = self._rows(records.POLL, 3 * nodes + 2)
        links.blocks = self._rows(records.BLOCK, nodes)
        links.reported = self._buffer(size * WORD_BYTES)
        links.report = self._buffer(CONTROL_MESSAGE.size_bytes + size * WORD_BYTES)
        links.report_rows = int(links.report) + CONTROL_MESSAGE.size_bytes
        links.msghdr.vectors = links.msghdr.gathered.address
        links.next, links.previous = links.peers[(own + 1) % nodes], links.peers[(own - 1) % nodes]
        for node, rank in enumerate(node_order.leaders):
            peer = links.peers[node]
            peer.control_fd = _descriptor(sockets.control.get(rank))
            peer.data_fd = _descriptor(sockets.data.get(rank))
            peer.process_fd = sockets.processes.get(rank, records.NO_LINK)

    def _rows(self, record: Record, count: int) -> int:
        return self._buffer(count * record.size_bytes)

    def _buffer(self, count: int) -> int:
        array = np.empty(-(-count // WORD_BYTES), dtype=np.int64)
        self._arrays.append(array)
        return int(array.ctypes.data)


def _descriptor(link: socket.socket | None) -> int:
    return records.NO_LINK if link is None else link.fileno()
