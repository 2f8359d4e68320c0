"""A program that makes one allreduce, and nothing else."""

import numpy as np

from cobre_comm import create_communicator

with create_communicator() as comm:
    total = np.empty(1)
    comm.allreduce(np.full(1, comm.rank + 1.0), total)
    print(comm.backend, total[0])
