"""Rank 0 has a table, and each rank needs a block of its rows."""

import numpy as np
from numpy.typing import NDArray

from cobre_comm import Communicator, create_communicator

ROWS, COLUMNS = 10, 4


def scatter(comm: Communicator, table: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Return the rows of this rank; only rank 0 passes the table."""
    region = comm.create_shared_region((ROWS, COLUMNS))
    whole = region.part(0, ROWS)
    if table is not None:
        whole[:] = table
    comm.broadcast(whole, root=0)  # each machine gets one copy
    start, stop = comm.share(ROWS)
    return region.as_slice()[start:stop]


with create_communicator() as comm:
    numbers = np.arange(ROWS * COLUMNS, dtype=np.float64)
    read = numbers.reshape(ROWS, COLUMNS)  # from a file, for example
    mine = scatter(comm, read if comm.rank == 0 else None)
    first = int(mine[0, 0]) // COLUMNS
    print(
        f"rank {comm.rank} has rows {first} to {first + len(mine) - 1}; their sum is {mine.sum()}"
    )
