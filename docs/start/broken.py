import numpy as np

from cobre_comm import create_communicator

with create_communicator() as comm:
    comm.barrier()
    if comm.rank == 1:
        prices = {"coal": 30.0}
        print(prices["gas"])
    comm.broadcast(np.zeros(3))
