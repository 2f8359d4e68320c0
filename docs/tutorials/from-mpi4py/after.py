import numpy as np

from cobre_comm import create_communicator

comm = create_communicator()
rank, size = comm.rank, comm.size

points = np.array_split(np.random.default_rng(2026).random((2001, 2)), size)[rank]
counts = np.empty(size, dtype=np.int64)
comm.allgather(np.array([points.size]), counts)
displs = np.cumsum(counts) - counts
everyone = np.empty(counts.sum())
comm.allgatherv(points, everyone, counts, displs)

inside = np.array([np.count_nonzero((points**2).sum(axis=1) < 1.0)])
total = np.empty(1, dtype=inside.dtype)
comm.allreduce(inside, total)

best = comm.max(points.max())
if rank == 0:
    print(f"{size} ranks: {total[0]} of {everyone.size // 2} points inside, largest {best:.6f}")
comm.close()
