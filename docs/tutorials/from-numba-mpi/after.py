import numpy as np
from numba import njit
from numpy.typing import NDArray

from cobre_comm import Communicator, create_communicator


@njit(cache=True)
def iterate(comm: Communicator, x: NDArray[np.float64], rounds: int) -> NDArray[np.float64]:
    """Move the mean of all ranks into each rank's own data, round by round."""
    total = np.empty_like(x)
    for _ in range(rounds):
        comm.allreduce(x, total)
        x[:] = 0.5 * x + 0.5 * total / comm.size
    return x


with create_communicator() as comm:
    x = iterate(comm, np.full(4, float(comm.rank)), 50)
    if comm.rank == 0:
        print(x)
