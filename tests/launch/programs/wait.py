"""WAY: ranks wait for rank 0, which does not arrive, or they meet again and again."""

import os
import sys
import time

from cobre_comm import create_communicator

way = sys.argv[1]


def meet(comm, times):
    for _ in range(times):
        comm.barrier()


if way == "njit":  # only this way needs numba, and to import it takes long
    from numba import njit

    meet = njit(cache=True, nogil=True)(meet)


comm = create_communicator()
meet(comm, 2)  # all ranks have compiled ``meet`` when it returns
print(f"ready {comm.rank} {os.getpid()}")
try:
    if way == "meet":
        meet(comm, 10**9)
    elif comm.rank == 0:
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
