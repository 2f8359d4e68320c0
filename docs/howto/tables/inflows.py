"""Fill a table of two axes together, one row for each scenario, and read all of it."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cobre_comm import create_communicator, random

SCENARIOS, MONTHS = 1000, 12


@njit(cache=True)
def simulate(rows: NDArray[np.float64], first: int) -> None:
    """Simulate the inflows of some scenarios; row k is scenario first + k."""
    for k in range(rows.shape[0]):
        key = random.key(1, first + k)
        inflow = 100.0
        for month in range(rows.shape[1]):
            inflow = 30.0 + 0.7 * inflow + 20.0 * random.normal(key, month)
            rows[k, month] = inflow


with create_communicator() as comm:
    table = comm.create_shared_region((SCENARIOS, MONTHS))
    start, stop = comm.share(SCENARIOS)
    simulate(table.part(start, stop), start)  # a view of the rows of this rank
    table.fence()  # from here on every rank reads every row
    years = table.as_slice().sum(axis=1)
    if comm.rank == 0:
        print(f"driest: scenario {years.argmin()} with {years.min():.3f}, mean {years.mean():.3f}")
