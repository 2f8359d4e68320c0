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
        return self._checked(self._exchange(part), [len(part)] * self.size)

    def agree(self, value: int) -> int:
        """Return the smallest value that a rank gives; collective."""
        given = self.collect(value.to_bytes(8, "big", signed=True))
        return min(int.from_bytes(part, "big", signed=True) for part in given)

    def allgatherv(
        self, send: NDArray[Any], recv: NDArray[Any], counts: NDArray[Any], displs: NDArray[Any]
    ) -> None:
        """Give every rank the blocks of all; collective."""
        lengths = [int(count) * recv.itemsize for count in counts]
        into = recv.reshape(-1)
        for part, begin in zip(
            self._checked(self._exchange(send.tobytes()), lengths), displs, strict=True
        ):
            block = np.frombuffer(part, dtype=recv.dtype)
            into[begin : begin + block.size] = block

    def broadcast(self, buf: NDArray[Any], root: int = 0) -> None:
        """Give every rank the bytes of the root; collective."""
        counts = np.zeros(self.size, dtype=np.int64)
        counts[root] = buf.size
        send = buf if self.rank == root else buf[:0]
        self.allgatherv(send, buf, counts, np.zeros_like(counts))

    def _checked(self, given: list[bytes], lengths: list[int]) -> list[bytes]:
        for rank, (part, length) in enumerate(zip(given, lengths, strict=True)):
            if len(part) != length:
                raise InitializationFailed(
                    "tcp", f"rank {rank} gave {len(part)} bytes out of turn, {length} were due"
                )
        return given
