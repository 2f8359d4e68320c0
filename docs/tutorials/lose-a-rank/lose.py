import os
import time
from pathlib import Path

import numpy as np

from cobre_comm import CollectiveFailed, Communicator, create_communicator
from cobre_comm.random import key, uniform

SCENARIOS, ROUNDS = 1000, 20


def mean_cost(comm: Communicator, number: int) -> float:
    """Return the mean cost of a round, of which each rank draws its share."""
    begin, end = comm.share(SCENARIOS)
    costs = [uniform(key(1, number, scenario, 0), 0) for scenario in range(begin, end)]
    time.sleep(0.3 / comm.size)  # stands for more work
    return comm.exact_sum(np.array(costs)) / SCENARIOS


comm = create_communicator()
means: list[float] = []
if comm.rank == 2:
    Path("rank-2.pid").write_text(str(os.getpid()))
while len(means) < ROUNDS:
    try:
        means.append(mean_cost(comm, len(means)))
    except CollectiveFailed as error:
        told = f"rank {comm.rank} of {comm.size}: {error}"
        comm = comm.shrink()
        del means[comm.min(len(means)) :]  # some may have finished one round more
        print(f"{told}\nrank {comm.rank} of {comm.size} goes on after round {len(means)}")
if comm.rank == 0:
    print(f"{ROUNDS} rounds, mean {float(np.mean(means))!r}")
