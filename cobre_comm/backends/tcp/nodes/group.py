"""The ranks of a rendezvous as a group that can agree, before a communicator exists over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre_comm.errors import InitializationFailed


class MeetingGroup:
    """A :class:`cobre_comm.common.agreement.Group` whose ranks exchange a few bytes.

    Parameters
    ----------
    rank, size : int
        This rank, and the number of ranks.
    exchange : callable
        Gives every rank the bytes of this one; returns those of all, in rank order; collective.
    """

    def __init__(self, rank: int, size: int, exchange: Callable[[bytes], list[bytes]]) -> None:
        self.rank = rank
        self.size = size
        self._exchange = exchange

    def collect(self, part: bytes) -> list[bytes]:
        """Return the bytes that each rank gives, of equal lengths; collective.

        Raises
        ------
        InitializationFailed
            If a rank gives more or less.
        """
        given = self._exchange(part)
        for rank, other in enumerate(given):
            if len(other) != len(part):
                raise InitializationFailed(
                    "tcp", f"rank {rank} gave {len(other)} bytes out of turn, {len(part)} were due"
                )
        return given

    def agree(self, value: int) -> int:
        """Return the smallest value that a rank gives; collective."""
        return int(self.gather_rows(np.array([value], dtype=np.int64)).min())

    def gather_rows(self, row: NDArray[Any]) -> NDArray[Any]:
        """Return the rows that all ranks give, of one length and dtype; collective."""
        given = b"".join(self.collect(row.tobytes()))
        return np.frombuffer(given, dtype=row.dtype).reshape(self.size, row.size)
