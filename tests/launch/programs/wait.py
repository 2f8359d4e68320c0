"""Ranks that wait for rank 0, who does not come: WAY of waiting, habits with signals."""

import os
import signal
import sys
import time

from numba import njit

from cobre_comm import create_communicator

way, *habits = sys.argv[1:]


@njit(nogil=True)
def meet(comm, times):
    for _ in range(times):
        comm.barrier()


if "stubborn" in habits:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
comm = create_communicator()
meet(comm, 2)  # compiled on all ranks
print(f"ready {comm.rank} {os.getpid()}")
try:
    if comm.rank == 0:
        time.sleep(60)
    elif way == "njit":
        meet(comm, 1000)
    else:
        comm.barrier()
except KeyboardInterrupt:
    print(f"interrupted {comm.rank}")
    raise
finally:
    print(f"finally {comm.rank}")
