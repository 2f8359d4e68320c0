"""Rank 1 aborts with code 7 while the others do something: ``aborts.py WAY CALLER``."""

import os
import sys
import time

from numba import njit

from cobre_comm import create_communicator

CODE = 7
WAIT_S = 60


@njit(cache=True)
def meet(comm):
    try:
        comm.barrier()
    except Exception:
        return 1
    return 0


def act(comm, way, caller):
    """Rank 1 aborts; another rank waits for it, or computes, and catches every error."""
    meet(comm)  # compiled on all ranks
    os.write(1, f"ready {comm.rank} {os.getpid()}\n".encode())
    meet(comm)  # all have said so
    if comm.rank == 1:
        time.sleep(0.2)  # until the others wait
        try:
            comm.abort(CODE)
        finally:
            os.write(1, b"abort has returned\n")
    if way == "part":
        comm = comm.split(0)
    if way == "compute":
        time.sleep(WAIT_S)
    try:
        meet(comm) if caller == "njit" else comm.barrier()
    except Exception as error:
        os.write(1, f"caught {error}\n".encode())
    time.sleep(WAIT_S)


if __name__ == "__main__":
    act(create_communicator(), *sys.argv[1:])
