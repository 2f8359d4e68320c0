"""A script that prints the time from making the communicator to the end of the first allreduce.

    cobre-comm run -n 2 --backend shm bench/ranks/first_collective.py python    # or: njit
    mpiexec -n 2 python bench/ranks/first_collective.py mpi4py

The time is that of the slowest rank. It includes imports on the way, without those of NumPy and, in
a program with @njit, of numba. It also includes the wait of the first rank for the last rank.
"""

import sys
import time

import numpy as np

CALLER = sys.argv[1]
SAYS = "seconds until the end of the first allreduce:"

send, recv = np.arange(4.0), np.empty(4)
slowest = np.empty(1)

if CALLER == "njit":
    from numba import njit

    @njit(cache=True, nogil=True)
    def first(comm, send, recv):
        comm.allreduce(send, recv)


def ours() -> tuple[int, int]:
    from cobre_comm import ReduceOp, create_communicator

    began = time.perf_counter()
    with create_communicator() as comm:
        if CALLER == "njit":
            first(comm, send, recv)
        else:
            comm.allreduce(send, recv)
        taken = np.array([time.perf_counter() - began])
        comm.allreduce(taken, slowest, ReduceOp.MAX)
        return comm.rank, comm.size


def theirs() -> tuple[int, int]:
    began = time.perf_counter()
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    world.Allreduce(send, recv)
    taken = np.array([time.perf_counter() - began])
    world.Allreduce(taken, slowest, MPI.MAX)
    return world.rank, world.size


rank, size = theirs() if CALLER == "mpi4py" else ours()
if not np.array_equal(recv, size * send):
    raise SystemExit("the first allreduce gave a wrong result")
if rank == 0:
    print(f"\n{SAYS} {slowest[0]:.6f}")
