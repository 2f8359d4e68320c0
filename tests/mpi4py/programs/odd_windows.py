"""Calls of windows: some have to be refused, and others are unusual but have to work."""

import numpy as np

from cobre_comm.mpi4py import MPI

world = MPI.COMM_WORLD
window = MPI.Win.Allocate(16, 8, comm=world)


def refused(call, *arguments):
    try:
        call(*arguments)
    except (ValueError, NotImplementedError) as error:
        print(f"{type(error).__name__}: {error}")


refused(window.Get, np.zeros(2), 0, 1)
refused(window.Put, np.zeros(1), 0, -1)
for rank in (MPI.PROC_NULL, world.size):
    refused(window.Get, np.zeros(1), rank)
    refused(window.Put, np.ones(1), rank)
    refused(window.Lock, rank)
    refused(window.Unlock, rank)
refused(MPI.Win.Allocate, -1, 8, None, MPI.COMM_SELF)
refused(lambda: window.Accumulate)
empty = MPI.Win.Allocate(0, 1, comm=world)
print("empty part", np.ndarray(0, dtype="d", buffer=empty.tomemory()).size)
empty.Free()
part = np.ndarray(2, dtype="d", buffer=window.tomemory())
part[:] = 5
window.Free()
print("after Free", part[1])
