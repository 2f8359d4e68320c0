"""Ranks go through phases in compiled code; then rank 0 is late, or rank 1 is killed: [WAY]."""

import os
import signal
import sys
import time

from numba import njit

from cobre_comm import create_communicator

STEPS = 1500
way = "".join(sys.argv[1:2])


@njit(cache=True)
def iterate(comm, forward, backward, steps):
    for _ in range(steps):
        outer = comm.enter(forward)
        comm.barrier()
        comm.enter(backward)
        comm.barrier()
        comm.barrier()
        comm.enter(outer)


comm = create_communicator()
iterate(comm, comm.phase_number("forward"), comm.phase_number("backward"), STEPS)
if way == "late":
    late, meet = comm.phase_number("late"), comm.phase_number("meet")
    with comm.phase("late"):
        print(f"ready {comm.rank} {os.getpid()}", flush=True)
        if comm.rank == 0:
            time.sleep(200)
        with comm.phase("meet"):
            comm.barrier()
with comm.phase("killed"):
    if way == "killed" and comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    comm.barrier()
