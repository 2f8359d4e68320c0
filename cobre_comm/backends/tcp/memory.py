"""The private memory of a communicator over sockets: its table of links and its buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
from cobre_kernels import layout
from cobre_kernels.atomics import WORD_BYTES
from cobre_kernels.tcp import frame, table
from numpy.typing import NDArray

from cobre_comm.backends.tcp.rendezvous import Links

NO_DESCRIPTOR = -1


class LinkMemory:
    """What the kernels need to know of the links; keep it as long as they may run.

    Inboxes and the outbox are not touched, and so are no memory yet, until a payload comes.

    Parameters
    ----------
    links : Links
        The connected sockets.
    rank, size : int
        This rank, and the number of ranks.
    """

    def __init__(self, links: Links, rank: int, size: int) -> None:
        self._arrays: list[NDArray[Any]] = []
        self._table = np.zeros(table.table_words(size), dtype=np.int64)
        star_bytes = links.star_bytes
        self._set(table.RING_OUT, _descriptor(links.ring_out))
        self._set(table.RING_IN, _descriptor(links.ring_in))
        self._set(table.STAR_BYTES, star_bytes)
        self._set(table.POLLS, self._buffer((3 * size + 2) * table.POLL_BYTES))
        self._set(table.OUTBOX, self._buffer(star_bytes))
        self._set(table.STAGING, self._buffer(table.STAGES * table.CHUNK_BYTES))
        self._set(table.BULLETIN, self._buffer(frame.HEAD_BYTES + size * layout.RECORD_BYTES))
        self._set(table.VERDICT_RECORDS, self._buffer(size * layout.RECORD_BYTES))
        self._set(table.BLOCKS, self._buffer(16 * size))
        for other in range(size):
            record = table.RECORDS + other * table.RECORD_BYTES
            star = links.star[other]
            self._set(record + table.CONTROL_FD, _descriptor(links.control[other]))
            self._set(record + table.STAR_FD, _descriptor(star))
            if star is not None:
                self._set(record + table.INBOX, self._buffer(frame.HEAD_BYTES + star_bytes))

    @property
    def address(self) -> int:
        """Address of the table, for the state."""
        return int(self._table.ctypes.data)

    def _set(self, offset: int, value: int) -> None:
        self._table[offset // WORD_BYTES] = value

    def _buffer(self, count: int) -> int:
        array = np.empty(-(-count // WORD_BYTES), dtype=np.int64)
        self._arrays.append(array)
        return int(array.ctypes.data)


def _descriptor(link: Any) -> int:
    return NO_DESCRIPTOR if link is None else int(link.fileno())
