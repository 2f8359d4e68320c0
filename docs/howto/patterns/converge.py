"""Iterate until all ranks are content, and let rank 0 report."""

import numpy as np

from cobre_comm import create_communicator

with create_communicator() as comm:
    squares = 1.0 + np.arange(*comm.share(1000))
    roots = squares.copy()
    for iteration in range(1, 100):
        before = roots
        roots = 0.5 * (before + squares / before)  # Newton's method, on the items of this rank
        change = comm.max(float(abs(roots - before).max()))  # the same on all ranks
        if comm.rank == 0:
            print(f"iteration {iteration}: change {change:.2e}")  # no collective in here
        if change < 1e-9:
            break  # all ranks leave the loop in the same iteration
