"""Ranks meet TIMES times, compiled if WAY says so, and again at the end: ``TIMES [WAY [FILE]]``."""

import os
import pathlib
import resource
import signal
import sys
import time

import numpy as np

from cobre_comm import create_communicator

times, way = int(sys.argv[1]), "".join(sys.argv[2:3])


def meet(comm, times):
    for _ in range(times):
        comm.barrier()


if way == "compiled":  # only this way needs numba, and to import it takes long
    from numba import njit

    meet = njit(cache=True)(meet)
comm = create_communicator()
if way == "no room":
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, most[1]))
meet(comm, times)
if way == "no room":
    resource.setrlimit(resource.RLIMIT_FSIZE, most)
total = np.ones(4)
comm.allreduce(total, total)
if way == "killed" and comm.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
if way == "awaits":
    print(f"ready {comm.rank} {os.getpid()}", flush=True)
    while not pathlib.Path(sys.argv[3]).exists():
        time.sleep(0.02)
comm.barrier()
with comm.split_local() as node:
    node.barrier()
