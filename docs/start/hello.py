import numpy as np

from cobre_comm import create_communicator

with create_communicator() as comm:
    mine = np.array([comm.rank, 1.0])
    total = np.empty(2)
    comm.allreduce(mine, total)
    print(f"rank {comm.rank} of {comm.size} on {comm.backend}: the sum is {total}")
