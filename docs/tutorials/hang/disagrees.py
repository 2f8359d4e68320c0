import numpy as np

from cobre_comm import create_communicator

with create_communicator() as comm:
    cuts = np.ones(4 if comm.rank != 2 else 5)  # rank 2 has found one cut more
    total = np.empty_like(cuts)
    comm.allreduce(cuts, total)
