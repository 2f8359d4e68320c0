import numpy as np
from numba import njit

from cobre_comm import Communicator, create_communicator


@njit(cache=True, nogil=True)
def iterate(comm: Communicator, rounds: int, work: int) -> None:
    """Compute for a while, then tell everyone; round after round."""
    mine, everyone = np.zeros(500), np.empty(500 * comm.size)
    for _ in range(rounds):
        for i in range(work):
            mine[i % 500] += np.sqrt(i)
        comm.allgather(mine, everyone)
        comm.barrier()


with create_communicator() as comm:
    iterate(comm, 1, 1)  # compile
    iterate(comm, 40, 1_000_000 * (1 + 2 * comm.rank))  # rank 1 has three times the work
