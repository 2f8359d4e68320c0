"""Rank 1 aborts with code 7 while the others do something: ``aborts.py WAY CALLER``."""

import os
import sys
import time

from cobre_comm import create_communicator

CODE = 7
WAIT_S = 60


def meet(comm):
    try:
        comm.barrier()
    except Exception:
        return True
    return False


def compiled(comm):
    """Return ``meet``, which rank 0 compiles for all; only compiled callers import numba."""
    from numba import njit, typeof

    wait = njit(cache=True)(meet)
    if comm.rank == 0:
        wait.compile((typeof(comm),))
    comm.barrier()
    return wait


def act(comm, way, caller):
    """Rank 1 aborts; the other ranks wait for it or compute, and catch every error."""
    wait = compiled(comm) if caller == "njit" else meet
    wait(comm)  # all ranks have loaded ``wait`` when it returns
    os.write(1, f"ready {comm.rank} {os.getpid()}\n".encode())
    wait(comm)  # all ranks have written their lines
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
    if wait(comm):
        os.write(1, b"caught an error\n")
    time.sleep(WAIT_S)


if __name__ == "__main__":
    act(create_communicator(), *sys.argv[1:])
