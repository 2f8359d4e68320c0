"""A program of mpi4py: rank 1 fails in the way HOW (an argument), while the others reduce."""

import os
import signal
import sys
import time

import numpy as np
from mpi4py import MPI

comm, how = MPI.COMM_WORLD, sys.argv[1]
send = np.arange(3.0)
comm.Allreduce(send, np.empty(3), op=MPI.SUM)
if how == "list":
    comm.scatter([0] if comm.rank == 0 else None)
if comm.rank == 1:
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raises":
        raise ValueError("of rank 1")
    if how == "another":
        comm.Bcast(send)
    if how == "shorter":
        comm.Allreduce(send[:2], np.empty(2))
    if how == "aborts":
        comm.Abort(7)
    if how == "late":
        time.sleep(30)
comm.Allreduce(send, np.empty(3), op=MPI.SUM)
