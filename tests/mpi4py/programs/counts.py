"""Ranks add to two numbers in rank 0's part, under its lock, and read both without a pause."""

import numpy as np

from cobre_comm.mpi4py import MPI

world = MPI.COMM_WORLD
window = MPI.Win.Allocate(16 * (world.rank == 0), 8, comm=world)
torn, pair = 0, np.zeros(2)
for _ in range(100):
    window.Lock(0)
    window.Get(pair, 0)
    pair += 1
    window.Put(pair[:1].copy(), 0)
    window.Put(pair[1:].copy(), 0, 1)
    window.Unlock(0)
    for _ in range(5):
        window.Lock(0, MPI.LOCK_SHARED)
        window.Get([pair, 2, MPI.DOUBLE], 0, (0, 2, MPI.DOUBLE))
        window.Unlock(0)
        torn += pair[0] != pair[1]
world.Barrier()
window.Lock(0, MPI.LOCK_SHARED)
window.Get(pair, 0)
window.Unlock(0)
print(f"counted {pair[0]:.0f}, torn {torn}")
window.Free()
