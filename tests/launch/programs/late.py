"""Rank 1 is PAUSE seconds late at a barrier in CALLER; logging is not configured.

``cobre-comm run`` starts the ranks; or this program, given BACKEND, launches three ranks on it.
"""

import sys
import time

from cobre_comm import create_communicator, launch


def barrier(comm):
    comm.barrier()


def late(comm, caller, pause_s):
    meet = barrier
    if caller == "njit":  # only compiled callers need numba, and to import it takes long
        from numba import njit, typeof

        meet = njit(cache=True)(barrier)
        if comm.rank == 0:  # rank 0 compiles for all
            meet.compile((typeof(comm),))
    comm.sum(1)
    meet(comm)  # all ranks have loaded ``meet`` when it returns
    if comm.rank == 1:
        time.sleep(pause_s)
    meet(comm)


if __name__ == "__main__":
    caller, pause_s, *backend = sys.argv[1:]
    if backend:
        launch(late, 3, backend=backend[0], args=(caller, float(pause_s)))
    else:
        with create_communicator() as comm:
            late(comm, caller, float(pause_s))
