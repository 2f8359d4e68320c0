"""What a rank does in the tests of errors."""

import numpy as np

from cobre_comm import CommError, ReduceOp
from cobre_comm.testing.conformance.calls import calls

# What a rank finds wrong by itself, and what it does afterwards.
REFUSED = ["InvalidRoot", "InvalidBufferSize", "TypeError", "ValueError"]
THEN = ["barrier", "close"]


def _told(call, *arguments):
    """Return the error, its fields and its text as this rank sees them."""
    try:
        call(*arguments)
    except CommError as error:
        return error, dict(vars(error)), str(error)
    raise AssertionError("nothing was raised")


def raise_one(comm, caller, name):
    """Every rank meets the same error."""
    made, one, two = calls(caller), np.ones(4), np.zeros(4)
    if name == "InvalidRoot":
        return _told(made.broadcast, comm, one, 1000)
    if name == "InvalidBufferSize":
        return _told(made.allreduce, comm, one, np.zeros(3), ReduceOp.SUM)
    if name == "InvalidCommunicator":
        comm.close()
        return _told(made.allreduce, comm, one, two, ReduceOp.SUM)
    length = 4 + comm.rank
    return _told(made.allreduce, comm, np.ones(length), np.zeros(length), ReduceOp.SUM)


def raise_allocation_failed(comm, count):
    return _told(comm.create_shared_region, count, np.float64)


def _refused(comm, made, name):
    """Make a call that this rank alone can see to be wrong."""
    good, size = np.ones(4), comm.size
    tables = np.full(size, 4), 4 * np.arange(size)
    if name == "InvalidRoot":
        made.broadcast(comm, good, size)
    if name == "InvalidBufferSize":
        made.allgatherv(comm, good, np.zeros(4 * size - 1), *tables)
    if name == "TypeError":
        made.allreduce(comm, good, np.zeros(4, np.float32), ReduceOp.SUM)
    if name == "ValueError":
        made.allreduce(comm, good, np.zeros(8)[::2], ReduceOp.SUM)


def refused_on_one(comm, caller, name, then):
    """Rank 1 does not take part in what the others do; return what each meets first."""
    made = calls(caller)
    comm.barrier()
    first = None
    try:
        if comm.rank == 1:
            _refused(comm, made, name)
        made.allreduce(comm, np.ones(4), np.zeros(4), ReduceOp.SUM)
    except Exception as error:
        first = error
    if comm.rank == 1:
        if then == "close":
            comm.close()
        else:
            _told(made.barrier, comm)
    return first


def refused_region_on_one(comm):
    """Rank 1's region is refused before it communicates."""
    comm.barrier()
    try:
        comm.create_shared_region(-1 if comm.rank == 1 else 5)
    except Exception as error:
        first = error
    else:
        first = None
    if comm.rank == 1:
        _told(comm.barrier)
    return first
