"""The private memory of a communicator over sockets: its record of links, and buffers."""

from __future__ import annotations

import socket
from typing import Any

import numpy as np
from cobre_kernels.collective.comm import FAILURE
from cobre_kernels.machine.record import Record
from cobre_kernels.tcp import links as records
from cobre_kernels.tcp.frame import CONTROL_MESSAGE, HEADER_BYTES
from cobre_kernels.tcp.progress.neighbours import advance_kernel
from cobre_kernels.tcp.progress.transfer import transfer_kernel
from numpy.typing import NDArray

from cobre_comm.backends.tcp.rendezvous import Links

SMALLEST_GATHER_BYTES = 4096


class LinkMemory:
    """The records by which kernels use the links; keep them as long as kernels may run.

    Inboxes and the outbox are not touched, and so are no memory yet, until a payload comes.

    Parameters
    ----------
    sockets : Links
        The connected sockets.
    size : int
        The number of ranks.

    Attributes
    ----------
    links : View
        The record.
    """

    def __init__(self, sockets: Links, size: int) -> None:
        self._arrays: list[NDArray[Any]] = [records.LINKS.array(size)]
        self.links = links = records.LINKS.of(self._arrays[0])
        links.transfer, links.advance = transfer_kernel.address, advance_kernel.address
        links.ring_out = _descriptor(sockets.ring_out)
        links.ring_in = _descriptor(sockets.ring_in)
        links.star_bytes = sockets.star_bytes
        links.gather_bytes = max(sockets.star_bytes, SMALLEST_GATHER_BYTES)
        links.outbox = self._buffer(sockets.star_bytes)
        links.staging = self._buffer(records.STAGING_CHUNKS * records.CHUNK_BYTES)
        links.polls = self._rows(records.POLL, 3 * size + 2)
        links.blocks = self._rows(records.BLOCK, size)
        links.reported = self._rows(FAILURE, size)
        links.report = self._buffer(CONTROL_MESSAGE.size_bytes + size * FAILURE.size_bytes)
        links.report_rows = int(links.report) + CONTROL_MESSAGE.size_bytes
        links.msghdr.vectors = links.msghdr.gathered.address
        for rank in range(size):
            peer, star = links.peers[rank], sockets.star[rank]
            peer.control_fd, peer.star_fd = _descriptor(sockets.control[rank]), _descriptor(star)
            peer.process_fd = sockets.processes.get(rank, records.NO_LINK)
            if star is not None:
                peer.inbox = self._buffer(HEADER_BYTES + int(links.gather_bytes))

    def _rows(self, record: Record, count: int) -> int:
        return self._buffer(count * record.size_bytes)

    def _buffer(self, count: int) -> int:
        array = np.empty(-(-count // 8), dtype=np.int64)
        self._arrays.append(array)
        return int(array.ctypes.data)


def _descriptor(link: socket.socket | None) -> int:
    return records.NO_LINK if link is None else link.fileno()
