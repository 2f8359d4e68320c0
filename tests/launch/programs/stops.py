"""Ranks meet until one is asked to stop; WHERE says whether the loop is in Python or in njit."""

import os
import sys

import numpy as np

from cobre_comm import create_communicator


def until_asked(comm, send, recv):
    rounds = 0
    while not comm.stop_requested():
        comm.allreduce(send, recv)
        rounds += 1
    return rounds


loop = until_asked
if sys.argv[1] == "njit":  # only a compiled loop needs numba, and to import it takes long
    from numba import njit, typeof

    loop = njit(cache=True, nogil=True)(until_asked)
with create_communicator() as comm:
    if sys.argv[1] == "njit" and comm.rank == 0:  # rank 0 compiles for all
        loop.compile((typeof(comm), typeof(np.ones(3)), typeof(np.ones(3))))
    comm.barrier()
    print(f"ready {comm.rank} {os.getpid()}")
    print(f"rounds {loop(comm, np.ones(3), np.zeros(3))}")
