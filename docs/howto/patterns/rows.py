"""Gather rows, where each rank has found a different number of rows."""

import numpy as np

from cobre_comm import create_communicator

with create_communicator() as comm:
    start, stop = comm.share(50)
    found = [(n, d) for n in range(start, stop) for d in range(2, n) if n % d == 0]
    mine = np.array(found, dtype=np.int64).reshape(-1, 2)
    counts = np.empty(comm.size, dtype=np.int64)
    comm.allgather(np.array([mine.size]), counts)  # in elements
    rows = np.empty((counts.sum() // 2, 2), dtype=np.int64)
    comm.allgatherv(mine, rows, counts, np.cumsum(counts) - counts)
    if comm.rank == 0:
        print(f"{len(rows)} rows; the last is {rows[-1].tolist()}")
