"""Each call once, in Python and then in compiled code."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cobre_comm import (
    Communicator,
    ReduceOp,
    SharedRegion,
    Work,
    create_communicator,
    monotonic_ns,
    objects,
)

comm = create_communicator()
x, out = np.full(3, comm.rank + 1.0), np.empty(3)

# Arrays of one length
comm.allreduce(x, out)  # the sum of all ranks, element by element
comm.allreduce(x, out, ReduceOp.MAX)  # or MIN, PROD, LAND, LOR, BAND, BOR
comm.allreduce(out, out)  # in place
comm.broadcast(out, root=0)  # all ranks get the root's array
rows = np.empty((comm.size, 3))
comm.allgather(x, rows)  # row r is the array of rank r

# Shares of n items
counts, displs = comm.shares(10)  # of all ranks
start, stop = comm.share(10)  # of this rank
items = np.zeros(10)
comm.allgatherv(np.arange(start, stop, dtype=float), items, counts, displs)
whole = np.empty(10) if comm.rank == 0 else None
comm.gatherv(items[start:stop].copy(), whole, counts, displs, root=0)  # the root alone gets all

# One number of each rank
total, least, most = comm.sum(comm.rank), comm.min(0.5), comm.max(int(stop > 5))
mean = comm.exact_sum(items[start:stop]) / 10  # the same bits for any number of ranks

# Memory of a node, items by demand, Python objects
region = comm.create_shared_region((4, 3))
if comm.is_leader:
    region.as_mut_slice()[:] = 1.0
region.fence()  # all ranks see what was written before
shared = region.as_slice()
work = comm.create_work(100)
while (item := work.claim()) >= 0:
    out[0] += item
settings = objects.broadcast(comm, {"seed": 7} if comm.rank == 0 else None)

# Groups, phases, what has happened
pair = comm.split(comm.rank // 2)  # the ranks of one color
node = comm.split_local()  # the ranks of this node
with comm.phase("solve"):
    comm.barrier()
solve = comm.phase_number("solve")  # for compiled code
solving = comm.stats().phases["solve"]  # seconds of this rank, computing and in collectives


Array = NDArray[np.float64]
Table = NDArray[np.int64]


@njit(cache=True)
def compiled(
    comm: Communicator, x: Array, out: Array, rows: Array, items: Array,
    counts: Table, displs: Table, work: Work, region: SharedRegion, solve: int,
) -> tuple[float, float]:  # fmt: skip
    """Return a number that all ranks have, and the seconds that it took."""
    began, before = monotonic_ns(), comm.enter_phase(solve)  # time counts for this phase
    comm.allreduce(x, out, ReduceOp.MIN)
    comm.broadcast(out, 0)
    comm.allgather(x, rows)
    start, stop = comm.share(items.size)
    comm.allgatherv(items[start:stop].copy(), items, counts, displs)
    mean = comm.exact_sum(items[start:stop]) / items.size
    while True:
        item = work.claim()
        if item < 0:
            break
        out[0] += 0.5 * item
    region.fence()
    top = region.as_slice()[0, 0]
    comm.barrier()
    comm.enter_phase(before)
    if comm.stop_requested():  # a signal has asked a rank to stop; all get the same answer
        return -1.0, 0.0
    return comm.sum(mean) + comm.max(top), (monotonic_ns() - began) * 1e-9


work.reset()
value, seconds = compiled(comm, x, out, rows, items, counts, displs, work, region, solve)
if comm.rank == 0:
    print(total, most, mean, settings, value)
comm.close()
