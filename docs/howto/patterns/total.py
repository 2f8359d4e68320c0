"""Sum a list of which each rank has a share."""

import numpy as np

from cobre_comm import create_communicator

prices = [0.1 * k for k in range(1000)]
with create_communicator() as comm:
    start, stop = comm.share(len(prices))  # the share of this rank
    total = comm.exact_sum(np.array(prices[start:stop]))  # the same bits on any number of ranks
    count = comm.sum(stop - start)  # the sum of one number from each rank
    if comm.rank == 0:
        print(f"the sum of {count} prices is {total!r}")
