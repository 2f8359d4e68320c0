"""The ranks of an MPI communicator as a group that can agree, before ours exists over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mpi4py import MPI


class MpiGroup:
    """A :class:`cobre_comm.common.agreement.Group` that talks by MPI's own collectives."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm
        self.rank: int = comm.rank
        self.size: int = comm.size

    def agree(self, value: int) -> int:
        """Return the smallest value that a rank gives; collective."""
        return int(self.gather_rows(np.array([value], dtype=np.int64)).min())

    def gather_rows(self, row: NDArray[Any]) -> NDArray[Any]:
        """Return the rows that all ranks give, of one length and dtype; collective."""
        from mpi4py import MPI

        rows = np.empty((self.size, row.size), dtype=row.dtype)
        self._comm.Allgather([row, MPI.BYTE], [rows, MPI.BYTE])
        return rows
