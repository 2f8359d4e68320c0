"""Ranks that know mpi4py only: one of them ends in some WAY while the others wait for it."""

import os
import signal
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
way, actor = sys.argv[1], int(sys.argv[2])
print(f"ready {world.rank} {os.getpid()}", flush=True)
world.Barrier()
if world.rank == actor:
    if way == "abort":
        world.Abort(5)
    if way == "exit":
        os._exit(3)  # sys.exit would wait for the others in MPI_Finalize
    os.kill(os.getpid(), signal.SIGKILL)
world.Barrier()
