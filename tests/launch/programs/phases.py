"""Ranks go through phases, in compiled code; then rank 1 is killed or rank 0 is late: [WAY].

If WAY is late, ranks go through few phases, in Python: numba takes long to import and compile.
"""

import os
import signal
import sys
import time

from cobre_comm import create_communicator

STEPS = 1500
way = "".join(sys.argv[1:2])


def iterate(comm, forward, backward, steps):
    for _ in range(steps):
        outer = comm.enter_phase(forward)
        comm.barrier()
        comm.enter_phase(backward)
        comm.barrier()
        comm.barrier()
        comm.enter_phase(outer)


if way != "late":
    from numba import njit

    iterate = njit(cache=True)(iterate)
comm = create_communicator()
if comm.rank == 0:  # rank 0 compiles for all
    iterate(comm, comm.phase_number("forward"), comm.phase_number("backward"), 0)
comm.barrier()
iterate(
    comm, comm.phase_number("forward"), comm.phase_number("backward"), 3 if way == "late" else STEPS
)
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
