"""Estimate pi with the same random numbers on any number of ranks."""

import numpy as np

from cobre_comm import create_communicator, random

SEED, THROWS = 2026, 1_000_000
with create_communicator() as comm:
    throws = np.arange(*comm.share(THROWS))  # the numbers of the throws of this rank
    x = random.uniform(random.key(SEED, 0), throws)
    y = random.uniform(random.key(SEED, 1), throws)
    hits = comm.sum(int(np.count_nonzero(x * x + y * y < 1)))
    share = hits / THROWS
    half = 1.96 * (share * (1 - share) / THROWS) ** 0.5
    if comm.rank == 0:
        print(f"pi is {4 * share:.6f}, give or take {4 * half:.6f}")
