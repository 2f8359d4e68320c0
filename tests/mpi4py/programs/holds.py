"""Rank 1 locks the part of rank 0, and then acts by HOW; the other ranks try to lock that part."""

import os
import signal
import sys
import time

import numpy as np

from cobre_comm.mpi4py import MPI

how, lock = sys.argv[1], getattr(MPI, sys.argv[2])
world = MPI.COMM_WORLD
window = MPI.Win.Allocate(8, 8, comm=world)
print("ready", world.rank, os.getpid(), flush=True)
if world.rank == 1:
    window.Lock(0, lock)
    world.Barrier()
    if how == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "stops":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how.startswith("late"):
        time.sleep(float(how[4:] or 0.3))
        window.Put(np.ones(1), 0)
        window.Unlock(0)
    time.sleep(10**6 if how == "sleeps" else 0)
else:
    world.Barrier()
    for _ in range(2):  # the second try ends like the first
        try:
            window.Lock(0, MPI.LOCK_EXCLUSIVE)
        except MPI.Exception as error:
            print(f"{type(error).__name__}: {error} {error.ranks}", flush=True)
        else:
            got = np.zeros(1)
            window.Get(got, 0)
            window.Unlock(0)
            print("got", got[0], flush=True)
    if how in ("stops", "sleeps"):
        # after that, the launcher ends the rank that holds the lock
        os.kill(os.getpid(), signal.SIGKILL)
