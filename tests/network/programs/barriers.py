"""Barriers inside @njit code for at most a minute; all ranks are ready when each has said so."""

import os
import time

from numba import njit

from cobre_comm import create_communicator


@njit(nogil=True)
def meet(comm, times):
    for _ in range(times):
        comm.barrier()


comm = create_communicator()
meet(comm, 2)
print(f"ready {comm.rank} {os.getpid()}", flush=True)
until = time.monotonic() + 60
while time.monotonic() < until:
    meet(comm, 100)
