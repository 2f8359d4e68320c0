import time

import numpy as np
from numba import njit
from serial import SCENARIOS, cost_of_year

from cobre_comm import Communicator, create_communicator


@njit(cache=True, nogil=True)
def best_target(comm: Communicator, scenarios: int, rounds: int) -> tuple[float, float]:
    """Return the best target and its mean cost, by narrowing an interval."""
    low, high = 0.0, 100.0
    first, last = comm.share(scenarios)
    costs = np.empty(last - first)
    mean = 0.0
    for _ in range(rounds):
        third = (high - low) / 3
        means = np.empty(2)
        for side in range(2):
            target = low + third * (1 + side)
            for scenario in range(first, last):
                costs[scenario - first] = cost_of_year(scenario, target)
            means[side] = comm.exact_sum(costs) / scenarios
        if means[0] < means[1]:
            high -= third
        else:
            low += third
        mean = means.min()
    return (low + high) / 2, mean


if __name__ == "__main__":
    with create_communicator() as comm:
        best_target(comm, 1, 1)  # compile
        comm.barrier()
        start = time.perf_counter()
        target, mean = best_target(comm, SCENARIOS, 30)
        if comm.rank == 0:
            print(f"target {target:.12f}, mean cost {mean:.12f}")
            print(f"{time.perf_counter() - start:.2f} s on {comm.size} ranks")
