"""Read a table once for each machine, and share it among its ranks."""

import numpy as np

from cobre_comm import create_communicator

ROWS, COLUMNS = 365, 24
with create_communicator() as comm:
    region = comm.create_shared_region((ROWS, COLUMNS))
    if comm.is_leader:  # one rank of each machine
        hours = np.arange(ROWS * COLUMNS, dtype=np.float64)  # from a file, for example
        region.as_mut_slice()[:] = hours.reshape(ROWS, COLUMNS)
    region.fence()  # from here on every rank sees the table
    table = region.as_slice()  # read-only, no copy
    start, stop = comm.share(ROWS)
    highest = comm.max(float(table[start:stop].mean(axis=1).max()))
    if comm.rank == 0:
        print(f"highest mean of a day: {highest}")
