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
        from mpi4py import MPI

        smallest = np.array([value], dtype=np.int64)
        self._comm.Allreduce(MPI.IN_PLACE, [smallest, MPI.INT64_T], MPI.MIN)
        return int(smallest[0])

    def allgatherv(
        self, send: NDArray[Any], recv: NDArray[Any], counts: NDArray[Any], displs: NDArray[Any]
    ) -> None:
        """Give every rank the blocks of all; collective."""
        from mpi4py import MPI

        lengths, starts = counts * recv.itemsize, displs * recv.itemsize
        self._comm.Allgatherv([send, MPI.BYTE], [recv, lengths, starts, MPI.BYTE])

    def broadcast(self, buf: NDArray[Any], root: int = 0) -> None:
        """Give every rank the bytes of the root; collective."""
        from mpi4py import MPI

        self._comm.Bcast([buf.view(np.uint8), MPI.BYTE], root)
