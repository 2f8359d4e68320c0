"""Calls of docs/howto/moving-from-mpi.md beside mpi4py's; their results are compared."""

import numpy as np
from mpi4py import MPI
from numba import njit

from cobre_comm import CollectiveFailed, MpiBackend, ReduceOp, create_communicator

world = MPI.COMM_WORLD
comm = create_communicator()
rank, size = comm.rank, comm.size
assert (rank, size, comm.backend) == (world.Get_rank(), world.Get_size(), "mpi")


def same(theirs, ours):
    assert np.array_equal(theirs, ours), (theirs, ours)


def gather():
    counts = np.arange(1, size + 1)
    displs = np.concatenate([[0], np.cumsum(counts)[:-1]])
    send = np.arange(counts[rank]) + 100.0 * rank
    theirs, ours = np.full(counts.sum(), -1.0), np.full(counts.sum(), -2.0)
    world.Allgatherv(send, [theirs, counts, displs, MPI.DOUBLE])
    comm.allgatherv(send, ours, counts, displs)
    same(theirs, ours)
    own = np.full(counts.sum(), -3.0)
    block = own[displs[rank] : displs[rank] + counts[rank]]
    block[:] = send
    comm.allgatherv(block, own, counts, displs)
    same(theirs, own)
    theirs, ours = np.full(counts.sum(), -1.0), np.full(counts.sum(), -1.0)
    rest = (ours, counts, displs) if rank == size - 1 else (None, None, None)
    world.Gatherv(send, [theirs, counts, displs, MPI.DOUBLE], root=size - 1)
    comm.gatherv(send, *rest, size - 1)
    same(theirs, ours)
    theirs, ours = np.empty((size, 3)), np.empty((size, 3))
    world.Allgather(np.full(3, rank + 0.5), theirs)
    comm.allgather(np.full(3, rank + 0.5), ours)
    same(theirs, ours)


def reduce():
    x = np.array([rank + 1.0, -rank, 0.5])
    for operation, op in (
        (MPI.SUM, ReduceOp.SUM),
        (MPI.MIN, ReduceOp.MIN),
        (MPI.MAX, ReduceOp.MAX),
        (MPI.PROD, ReduceOp.PROD),
    ):
        theirs, ours = np.empty(3), np.empty(3)
        world.Allreduce(x, theirs, op=operation)
        comm.allreduce(x, ours, op)
        same(theirs, ours)
        theirs, ours = x.copy(), x.copy()
        world.Allreduce(MPI.IN_PLACE, theirs, op=operation)
        comm.allreduce(ours, ours, op)
        same(theirs, ours)
    assert comm.sum(rank + 1) == world.allreduce(rank + 1)
    assert comm.max(rank + 0.5) == world.allreduce(rank + 0.5, op=MPI.MAX)
    flags = np.array([rank, 1, 0]) + 6 * rank
    for operation, op in (
        (MPI.LAND, ReduceOp.LAND),
        (MPI.LOR, ReduceOp.LOR),
        (MPI.BAND, ReduceOp.BAND),
        (MPI.BOR, ReduceOp.BOR),
    ):
        theirs, ours = np.empty(3, np.int64), np.empty(3, np.int64)
        world.Allreduce(flags, theirs, op=operation)
        comm.allreduce(flags, ours, op)
        same(theirs, ours)


def broadcast_and_scatter():
    theirs, ours = np.full(4, float(rank)), np.full(4, float(rank))
    world.Bcast(theirs, root=size - 1)
    comm.broadcast(ours, root=size - 1)
    same(theirs, ours)
    whole = np.arange(2.0 * size)
    theirs = np.empty(2)
    world.Scatter(whole if rank == 0 else None, theirs, root=0)
    table = whole.copy() if rank == 0 else np.empty(2 * size)
    comm.broadcast(table, root=0)
    start, stop = comm.share(len(table))
    same(theirs, table[start:stop])


def share(count=1000):
    node = world.Split_type(MPI.COMM_TYPE_SHARED)
    window = MPI.Win.Allocate_shared(8 * count if node.rank == 0 else 0, 8, comm=node)
    memory, _ = window.Shared_query(0)
    theirs = np.ndarray(count, dtype=np.float64, buffer=memory)
    window.Fence()
    if node.rank == 0:
        theirs[:] = np.arange(count)
    window.Fence()
    with comm.split_local() as local, comm.create_shared_region(count) as region:
        assert (local.rank, local.size) == (node.rank, node.size)
        if comm.is_leader:
            region.as_mut_slice()[:] = np.arange(count)
        region.fence()
        same(theirs, region.as_slice())
    window.Free()


def split():
    part = world.Split(rank % 2, rank)
    with MpiBackend(part) as ours:
        total = np.array([rank])
        ours.allreduce(total, total)
        assert total[0] == sum(range(rank % 2, size, 2))
    part.Free()


@njit(cache=True)
def step(comm, x, total):
    comm.allreduce(x, total, ReduceOp.MAX)
    comm.barrier()
    return comm.rank + comm.size


gather()
reduce()
broadcast_and_scatter()
share()
split()
total = np.empty(1)
assert step(comm, np.array([float(rank)]), total) == rank + size
assert total[0] == size - 1
try:
    comm.allreduce(np.ones(1 + rank), np.ones(1 + rank))
except CollectiveFailed as error:
    print(f"refused: {error}")
print("all the same")
