"""Simulate scenarios whose numbers do not depend on the rank that draws them."""

import numpy as np
from numba import njit

from cobre_comm import create_communicator, random

SEED, SCENARIOS, STAGES = 2026, 1000, 12


@njit(cache=True)
def cost_of(iteration: int, scenario: int) -> float:
    """Return what a scenario of a reservoir costs in a year."""
    volume, cost = 60.0, 0.0
    for stage in range(STAGES):
        key = random.key(SEED, iteration, scenario, stage)
        volume += 10.0 + 6.0 * random.normal(key, 0) - 12.0
        if random.uniform(key, 0) < 0.05:  # a plant fails
            volume -= 5.0
        if volume < 0.0:
            cost, volume = cost - 40.0 * volume, 0.0
    return cost


with create_communicator() as comm:
    mine = [cost_of(1, scenario) for scenario in range(comm.rank, SCENARIOS, comm.size)]
    mean = comm.exact_sum(np.array(mine)) / SCENARIOS
    if comm.rank == 0:
        print(f"{comm.size} ranks: {mean!r}")
