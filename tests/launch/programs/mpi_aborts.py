"""Ranks that use mpi4py alone: one rank aborts while the others wait for it."""

import os
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
print(f"ready {world.rank} {os.getpid()}", flush=True)
world.Barrier()
if world.rank == int(sys.argv[1]):
    world.Abort(5)
world.Barrier()
