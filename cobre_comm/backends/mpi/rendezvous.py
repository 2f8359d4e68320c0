"""How the ranks of a new communicator meet: first all by MPI, then those of a node in a segment.

A blocking call of MPI ends neither at a limit nor for a signal. So all ranks first meet in a
barrier that is polled. The blocking calls that follow find every rank there.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre_comm.backends.agreement import first_problem, reason_of
from cobre_comm.backends.nodes.configs import within_node
from cobre_comm.backends.shm.attachment import Attachment, attach_group
from cobre_comm.backends.shm.rendezvous import START_TIMEOUT_S
from cobre_comm.config import MpiConfig
from cobre_comm.errors import InitializationFailed
from cobre_comm.system.running_time import running_s

if TYPE_CHECKING:
    from mpi4py import MPI

LOOK_S = 0.0005


def all_come(comm: MPI.Intracomm, limit_s: float) -> bool:
    """Wait in a barrier of MPI; tell whether all ranks have arrived within the limit."""
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
            "create the communicator, or raise COBRE_MPI_TIMEOUT_SECS",
        )


def share_node(world: MPI.Intracomm, node: MPI.Intracomm, config: MpiConfig) -> Attachment:
    """Attach the ranks of a node to one segment; on failure all ranks of all nodes raise."""
    within = within_node(config, node.rank, node.size)
    attachment, cause, problem = None, None, ""
    try:
        attachment = attach_group(within, MpiGroup(node))
    except Exception as error:  # the ranks of other nodes wait to hear whether this one could
        cause, problem = error, reason_of(error)
    found = first_problem(MpiGroup(world), problem)
    if found or attachment is None:
        raise InitializationFailed("mpi", found) from cause
    return attachment


class MpiGroup:
    """A :class:`cobre_comm.backends.agreement.Group` that talks by MPI's own collectives."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm
        self.rank: int = comm.rank
        self.size: int = comm.size

    def agree(self, value: int) -> int:
        """Return the smallest of the values of all ranks; collective."""
        return int(self.gather_rows(np.array([value], dtype=np.int64)).min())

    def gather_rows(self, row: NDArray[Any]) -> NDArray[Any]:
        """Gather one row from each rank, all of one length and dtype; collective."""
        from mpi4py import MPI

        rows = np.empty((self.size, row.size), dtype=row.dtype)
        self._comm.Allgather([row, MPI.BYTE], [rows, MPI.BYTE])
        return rows
