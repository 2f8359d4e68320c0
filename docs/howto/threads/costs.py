"""Each rank simulates its scenarios on several threads, and all ranks add up the costs."""

import numba
import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from cobre_comm import Communicator, create_communicator, random

SCENARIOS, STEPS, ROUNDS = 2000, 500, 3


@njit(cache=True, parallel=True)
def simulate(first: int, round_number: int, costs: NDArray[np.float64]) -> None:
    """Simulate some scenarios, on all threads of this rank; no collective in here."""
    for i in prange(costs.size):
        key = random.key(round_number, first + i)
        cost = 0.0
        for step in range(STEPS):
            cost += random.uniform(key, step)
        costs[i] = cost


@njit(cache=True)
def iterate(comm: Communicator, rounds: int) -> float:
    """Alternate between threads and ranks; return the mean cost of all scenarios."""
    start, stop = comm.share(SCENARIOS)
    costs = np.empty(stop - start)
    total = 0.0
    for round_number in range(rounds):
        simulate(start, round_number, costs)
        total += comm.exact_sum(costs)
    return total / (SCENARIOS * rounds)


with create_communicator() as comm:
    threads = numba.get_num_threads()  # also starts the threads, which cached code may fail to do
    mean = iterate(comm, ROUNDS)
    if comm.rank == 0:
        print(f"mean cost {mean}, by {comm.size} ranks of {threads} threads")
