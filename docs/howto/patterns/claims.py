"""Give items that take different times to whichever rank is free."""

import numpy as np

from cobre_comm import create_communicator


def solve(item: int) -> float:
    """Take longer for some items than for others."""
    return sum(1.0 / k**2 for k in range(1, 20_000 * (1 + item % 7)))


with create_communicator() as comm:
    work = comm.create_work(30)
    results = np.zeros(30)
    for item in work:  # no other rank gets this item
        results[item] = solve(item)
    comm.allreduce(results, results)  # the other ranks add 0
    if comm.rank == 0:
        print(f"from {results.min():.6f} to {results.max():.6f}")
