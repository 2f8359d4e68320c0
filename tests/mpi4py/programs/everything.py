"""Every call of mpi4py that the bridge has; each rank prints its results as one line of JSON.

This program runs over mpi4py and over the bridge. Sums of its numbers are exact in any order.
"""

import array
import json
import operator

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
told = {}


def tell(name, *values):
    told[name] = [v.tolist() if isinstance(v, np.ndarray) else v for v in values]


def mine(count, dtype="d"):
    return (np.arange(count) + 10 * (rank + 1)).astype(dtype)


def room(count, dtype="d"):
    return np.full(count, 99, dtype=dtype)


COUNTS = [r + 1 for r in range(size)]
DISPLS = [sum(COUNTS[:r]) + r for r in range(size)]  # there is an element between two blocks
LONG = DISPLS[-1] + COUNTS[-1]
OPERATIONS = ["SUM", "PROD", "MIN", "MAX", "LAND", "LOR", "LXOR", "BAND", "BOR", "BXOR"]


def reductions():
    for name in OPERATIONS:
        # The numbers of logical operations are 0 or 1, because on one rank MPICH returns numbers
        # unchanged.
        op, recv = getattr(MPI, name), room(3, "i8")
        send = mine(3, "i8") % (2 if name[0] == "L" else 7)
        world.Allreduce(send, recv, op=op)
        tell(f"Allreduce {name}", recv)
        tell(f"allreduce {name}", world.allreduce(int(send[1]), op=op))
    for dtype in ("b", "B", "h", "i4", "f", "d", "F", "D"):
        recv = room(3, dtype)
        world.Allreduce((mine(3) % 5).astype(dtype), recv)
        tell(f"Allreduce of {dtype}", [complex(x).real for x in recv])
    if size > 1:
        recv = room(2, "i1")
        world.Allreduce(np.array([2 * (rank == 0), 0], "i1"), recv, op=MPI.LOR)
        tell("LOR of int8", recv)
    for spec in (
        lambda x: x,
        lambda x: [x, MPI.DOUBLE],
        lambda x: (x, "d"),
        lambda x: [x, 4],
        lambda x: [x, 4, MPI.DOUBLE],
        lambda x: [x, (3, 1), MPI.DOUBLE],
        lambda x: [x, 3, 1, MPI.DOUBLE],
        lambda x: array.array("d", x) if x is not BUFFER else [memoryview(x), MPI.DOUBLE],
    ):
        BUFFER[:] = 99
        world.Allreduce(spec(mine(4)), spec(BUFFER))
        tell(f"spec {len(told)}", BUFFER)
    number = np.array(0.0)
    world.Allreduce([np.array(rank + 0.5), MPI.DOUBLE], [number, MPI.DOUBLE])
    tell("no axes", number)
    fortran = np.asfortranarray(mine(6).reshape(2, 3))
    world.Allreduce(MPI.IN_PLACE, fortran)
    tell("Allreduce in place, columns first", fortran)
    recv = room(3)
    world.Reduce(mine(3), recv, op=MPI.MAX, root=size - 1)
    tell("Reduce", recv)
    recv = mine(3)
    world.Reduce(MPI.IN_PLACE if rank == 0 else recv, recv if rank == 0 else None, op=MPI.PROD)
    tell("Reduce in place", recv)
    world.Allreduce(room(0), room(0))
    for name in ("Scan", "Exscan"):
        recv = room(3)
        getattr(world, name)(mine(3), recv, op=MPI.SUM)
        tell(name, recv)
    recv = room(COUNTS[rank])
    world.Reduce_scatter(np.arange(sum(COUNTS)) * (rank + 1.0), recv, COUNTS)
    tell("Reduce_scatter", recv)
    recv = room(2)
    world.Reduce_scatter_block(np.arange(2 * size) * (rank + 1.0), recv)
    tell("Reduce_scatter_block", recv)
    pair = ((7 * rank) % 3, rank)
    tell("places", world.allreduce(pair, op=MPI.MAXLOC), world.allreduce(pair, op=MPI.MINLOC))
    tell("reduce", world.reduce([rank], op=MPI.SUM, root=0))
    tell("scan", world.scan(f"{rank}"), world.exscan(f"{rank}"))
    own = MPI.Op.Create(lambda x, y, kind: joined(x, y) if kind else f"({x} {y})", commute=False)
    tell("own operation", world.allreduce("x", op=own).replace("(", "").replace(")", ""))
    recv = room(2)
    world.Allreduce(mine(2), recv, op=own)
    tell("own operation of arrays", recv)
    own.Free()


BUFFER = room(4)


def joined(x, y):
    np.frombuffer(y, dtype="d")[:] = np.maximum(np.frombuffer(x, "d"), np.frombuffer(y, "d"))


def blocks():
    buf = mine(4) if rank == size - 1 else room(4)
    world.Bcast(buf, root=size - 1)
    tell("Bcast", buf)
    recv = room((size, 2))
    world.Allgather(mine(2), recv)
    tell("Allgather", recv)
    recv = room(2 * size)
    recv[2 * rank : 2 * rank + 2] = mine(2)
    world.Allgather(MPI.IN_PLACE, [recv, 2, MPI.DOUBLE])
    tell("Allgather in place", recv)
    recv = room(LONG)
    world.Allgatherv(mine(COUNTS[rank]), [recv, COUNTS, DISPLS, MPI.DOUBLE])
    tell("Allgatherv", recv)
    recv = room(sum(COUNTS), "i4")
    world.Allgatherv(mine(COUNTS[rank], "i4"), [recv, COUNTS])
    tell("Allgatherv without displacements", recv)
    recv = room((size, 3), "i4") if rank == 0 else None
    world.Gather(mine(3, "i4"), recv, root=0)
    tell("Gather", recv)
    recv = room(LONG)
    spec = [recv, (COUNTS, DISPLS), MPI.DOUBLE] if rank == size - 1 else None
    world.Gatherv([mine(COUNTS[rank]), MPI.DOUBLE], spec, root=size - 1)
    tell("Gatherv", recv)
    recv = room(2)
    world.Scatter(np.arange(2.0 * size) if rank == 0 else None, recv, root=0)
    tell("Scatter", recv)
    recv = room(COUNTS[rank])
    spec = [np.arange(float(LONG)), COUNTS, DISPLS, MPI.DOUBLE] if rank == 0 else None
    world.Scatterv(spec, recv, root=0)
    tell("Scatterv", recv)
    recv = room(2 * size)
    world.Alltoall(mine(2 * size), recv)
    tell("Alltoall", recv)
    recv = room(size * (rank + 1))
    send = [mine(sum(COUNTS)), COUNTS, None, MPI.DOUBLE]
    world.Alltoallv(send, [recv, [rank + 1] * size, None, MPI.DOUBLE])
    tell("Alltoallv", recv)


def objects():
    tell("bcast", world.bcast({"rank": rank}, root=size - 1), world.bcast("x", root=np.float64(0)))
    shared = ["of root"]
    got = world.bcast(shared, root=0)
    tell("a copy", got is shared, got == ["of root"])
    tell("gather", world.gather((rank, None), root=size - 1))
    tell("allgather", world.allgather([rank] * rank))
    tell("scatter", world.scatter([f"to {r}" for r in range(size)] if rank == 0 else None))
    tell("alltoall", world.alltoall([f"{rank} to {r}" for r in range(size)]))


def communicators():
    half = world.Split(color=rank % 2, key=-rank)
    tell("Split", half.rank, half.size, half.allgather(rank))
    none = world.Split(color=MPI.UNDEFINED if rank == 0 else 0)
    tell("UNDEFINED", none == MPI.COMM_NULL, bool(none))
    again = world.Dup()
    tell("Dup", again == world, again.allreduce(1), isinstance(again, MPI.Intracomm))
    node = world.Split_type(MPI.COMM_TYPE_SHARED, key=rank)
    tell("Split_type", node.rank, node.Get_size())
    tell("COMM_SELF", MPI.COMM_SELF.allgather(rank), MPI.COMM_SELF.rank, MPI.COMM_SELF.size)
    for comm in (half, again, node):
        comm.Free()
    tell("freed", bool(half), operator.eq(half, MPI.COMM_NULL))


def windows():
    item = MPI.DOUBLE.Get_size()
    window = MPI.Win.Allocate((rank + 1) * item, item, comm=world)
    part = np.ndarray(rank + 1, dtype="d", buffer=window.tomemory())
    window.Lock(rank)
    part[:] = 10 * rank
    window.Unlock(rank)
    world.Barrier()
    got = room(1)
    for target in range(size):
        window.Lock(target, MPI.LOCK_SHARED)
        window.Get((got, 1, MPI.DOUBLE), target, target)
        window.Unlock(target)
        tell(f"Get {target}", got)
    world.Barrier()
    for _ in range(20):  # every rank adds to numbers in the part of rank 0
        window.Lock(0, MPI.LOCK_EXCLUSIVE)
        window.Get(got, 0)
        # mpi4py's Get may return before the data has arrived
        window.Flush(0) if hasattr(window, "Flush") else None
        got += 1
        window.Put(got, 0)
        window.Unlock(0)
    world.Barrier()
    tell("counted", float(part[0]) if rank == 0 else None)
    window.Free()
    bytes_here = 8 * 5 if rank == 0 else 0
    window = MPI.Win.Allocate_shared(bytes_here, 8, comm=world)
    memory, unit = window.Shared_query(0)
    shared = np.ndarray(5, dtype="d", buffer=memory)
    window.Fence()
    if rank == 0:
        shared[:] = 7
    window.Fence()
    tell("Allocate_shared", shared, unit)
    window.Free()
    alone = MPI.Win.Allocate(8)
    tell("alone", len(alone.tomemory()))
    alone.Free()
    memory = MPI.Alloc_mem(32)
    tell("Alloc_mem", len(np.frombuffer(memory, dtype="d")))


reductions()
blocks()
objects()
communicators()
windows()
world.Barrier()
world.barrier()
tell("asked", MPI.Is_initialized(), MPI.Is_finalized(), MPI.Wtime() > 0, MPI.Wtick() > 0)
tell("named", MPI.Get_processor_name(), world.Get_name(), MPI.DOUBLE.size, MPI.INT.Get_size())
print(f"told {json.dumps(told)}")
