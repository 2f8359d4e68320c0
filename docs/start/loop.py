import numpy as np
from numba import njit

from cobre_comm import Communicator, create_communicator


@njit(cache=True, nogil=True)
def partial_sums(comm: Communicator, terms: int, rounds: int) -> float:
    """Add up 1 / n^2 over all ranks: in each round, each takes a share of the terms."""
    total = 0.0
    start, stop = comm.share(terms)
    mine = np.empty(stop - start)
    for round_number in range(rounds):
        for i in range(mine.size):
            n = round_number * terms + start + i + 1
            mine[i] = 1.0 / (n * n)
        total += comm.exact_sum(mine)
    return total


with create_communicator() as comm:
    total = partial_sums(comm, 600, 1000)
    if comm.rank == 0:
        print(f"pi is about {np.sqrt(6 * total):.17f}, from {comm.size} ranks on {comm.backend}")
