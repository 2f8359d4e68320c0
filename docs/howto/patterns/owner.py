"""Find the largest of the values of all ranks, and the rank that has it."""

import numpy as np

from cobre_comm import create_communicator, random

SCENARIOS = 1000
with create_communicator() as comm:
    start, stop = comm.share(SCENARIOS)
    costs = random.normal(random.key(1), np.arange(start, stop))
    best = int(costs.argmax())
    pairs = np.empty((comm.size, 2))
    comm.allgather(np.array([costs[best], start + best]), pairs)
    owner = int(pairs[:, 0].argmax())  # the same on all ranks; the first of equal costs
    cost, scenario = pairs[owner]
    if comm.rank == owner:
        print(f"scenario {scenario:.0f} on rank {owner} costs {cost:.6f}")
