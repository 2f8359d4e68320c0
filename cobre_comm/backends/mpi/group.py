"""How ranks agree by MPI itself, before they have a communicator of ours.

A blocking call of MPI ends neither at a time limit nor for a signal. So all ranks first meet in a
barrier that is polled. After that barrier no rank is missing in the blocking calls.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre_comm.backends.agreement import Group
from cobre_comm.backends.shm.rendezvous import START_TIMEOUT_S
from cobre_comm.errors import InitializationFailed
from cobre_comm.reports.launcher import given
from cobre_comm.system.running_time import running_s

if TYPE_CHECKING:
    from mpi4py import MPI

LOOK_S = 0.0005


def all_come(comm: MPI.Intracomm, limit_s: float) -> bool:
    """Wait in a barrier of MPI; return whether all ranks have arrived within the limit."""
    deadline = running_s() + limit_s
    request = comm.Ibarrier()
    while not request.Test():
        if running_s() > deadline:
            return False
        time.sleep(LOOK_S)
    return True


def await_all(parent: MPI.Intracomm, timeout_s: float) -> None:
    """Wait until all ranks of a new communicator have arrived; the limit is that of ``shm``.

    ``InitializationFailed`` is raised if a rank has not arrived in time.
    """
    limit_s = max(timeout_s, START_TIMEOUT_S) if timeout_s else float("inf")
    if not all_come(parent, limit_s):
        raise InitializationFailed(
            "mpi",
            f"only some of the {parent.size} ranks have come within {limit_s:g} s; let every rank "
            f"create the communicator, or raise {given('COBRE_MPI_TIMEOUT_SECS')}",
        )


class MpiGroup(Group):
    """A group that uses MPI's own collectives."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm
        self.rank: int = comm.rank
        self.size: int = comm.size

    def gather_rows(self, row: NDArray[Any]) -> NDArray[Any]:
        """Gather one row from each rank, all of one length and dtype; collective."""
        from mpi4py import MPI

        rows = np.empty((self.size, row.size), dtype=row.dtype)
        self._comm.Allgather([row, MPI.BYTE], [rows, MPI.BYTE])
        return rows
