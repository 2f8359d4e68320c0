"""Ranks that call different things."""

import numpy as np

from cobre_comm import CollectiveFailed, ReduceOp
from cobre_comm.testing.conformance.bodies.lost import meet_failure, prepare
from cobre_comm.testing.conformance.calls import calls


def disagree(comm, caller, plans):
    """Each rank calls what its plan says: (operation, length, keyword arguments)."""
    prepare(comm, caller)
    operation, length, keywords = plans[comm.rank % len(plans)]
    caught, _, later, took = meet_failure(comm, caller, operation, length=length, **keywords)
    return caught, later, took


def disagree_on_tables(comm, caller, which):
    """Counts or displacements are right by themselves and not the same on all ranks."""
    comm.barrier()
    size = comm.size
    counts, displs = np.full(size, 2), 4 * np.arange(size)
    odd = comm.rank == size - 1
    if which == "displs" and odd:
        displs[0] += 1
    if which == "counts" and odd:
        counts[0] += 1
    if which == "swapped" and odd:
        displs[:2] = displs[1::-1].copy()
    recv = np.zeros(4 * size + 4)
    try:
        calls(caller).allgatherv(comm, np.ones(2), recv, counts, displs)
    except Exception as error:
        return error
    return None


def disagree_on_region(comm, which):
    comm.barrier()
    odd = comm.rank == comm.size - 1
    try:
        if which == "count":
            comm.create_shared_region(4 if odd else 5)
        elif which == "dtype":
            comm.create_shared_region(4, np.int64 if odd else np.float64)
        elif which == "split" and odd:
            comm.split_local()
        elif which == "fence":
            regions = [comm.create_shared_region(2) for _ in range(2)]
            regions[1 if odd else 0].fence()
        else:
            comm.create_shared_region(4)
    except Exception as error:
        return error
    return None


def one_bad_argument(comm, caller):
    """Rank 0's call is refused before communication; its next call meets the others' first."""
    comm.barrier()
    recv = np.zeros(3 if comm.rank == 0 else 4)
    try:
        calls(caller).allreduce(comm, np.zeros(4), recv, ReduceOp.SUM)
    except Exception as error:
        first = error
    else:
        first = None
    if comm.rank == 0:
        try:
            comm.barrier()
        except CollectiveFailed:
            return first
        raise AssertionError("rank 0 should learn of the disagreement, too")
    return first
