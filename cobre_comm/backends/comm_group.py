"""The ranks of a communicator as a group, which agrees by collectives of the communicator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre_comm.backends.agreement import Group
from cobre_comm.contract.communicator import Communicator
from cobre_comm.reduce_op import ReduceOp


class CommGroup(Group):
    """A group that uses the collectives of a communicator."""

    __slots__ = ("_comm", "rank", "size")

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm
        self.rank, self.size = comm.rank, comm.size

    def agree(self, value: int) -> int:
        """Return the smallest of the values of all ranks; collective."""
        smallest = np.array([value], dtype=np.int64)
        self._comm.allreduce(smallest, smallest, ReduceOp.MIN)
        return int(smallest[0])

    def gather_rows(self, row: NDArray[Any]) -> NDArray[Any]:
        """Gather one row from each rank, all of one length and dtype; collective."""
        rows = np.empty((self.size, row.size), dtype=row.dtype)
        self._comm.allgather(row, rows)
        return rows
