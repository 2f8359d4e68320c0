import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()

points = np.array_split(np.random.default_rng(2026).random((2001, 2)), size)[rank]
counts = np.array(world.allgather(points.size))
displs = np.cumsum(counts) - counts
everyone = np.empty(counts.sum())
world.Allgatherv(points, [everyone, counts, displs, MPI.DOUBLE])

inside = np.array([np.count_nonzero((points**2).sum(axis=1) < 1.0)])
total = np.empty(1, dtype=inside.dtype)
world.Allreduce(inside, total, op=MPI.SUM)

best = world.allreduce(points.max(), op=MPI.MAX)
if rank == 0:
    print(f"{size} ranks: {total[0]} of {everyone.size // 2} points inside, largest {best:.6f}")
