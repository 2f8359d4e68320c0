"""What ranks on several hosts do."""

import contextlib

from cobre_comm import ReduceOp
from cobre_comm.testing.cases.collectives import allgatherv, allreduce, broadcast
from cobre_comm.testing.cases.collectives.barrier import three_barriers
from cobre_comm.testing.cases.faults.calling import meet_failure, prepare
from cobre_comm.testing.cases.reference import OPS
from tests.network.hosts import inside

LENGTHS = [1, 13, 5_000, 100_003]
_for_good = contextlib.ExitStack()


def move_to(_, host):
    """Have only the network of that host from now on."""
    _for_good.enter_context(inside(host))


def all_collectives(comm, caller, lengths):
    """Each collective, verified; return the bytes of the longest reduction."""
    if caller == "mixed":
        caller = ("python", "njit")[comm.rank % 2]
    for length in lengths:
        allgatherv.gather_equal(comm, caller, "f8", length)
        uneven = allgatherv.packed([(0, length, 3)[r % 3] for r in range(comm.size)])
        allgatherv.gather(comm, caller, "f8", uneven, seed=1)
        broadcast.cast_from_every_rank(comm, caller, "f8", length)
        for op in OPS:
            allreduce.reduce(comm, caller, "f8", op, length)
    three_barriers(comm, caller)
    return allreduce.reduce(comm, caller, "f8", ReduceOp.SUM, lengths[-1])


def gather_large(comm, caller, count):
    """Meet first, so that what follows is one collective under way on all ranks."""
    prepare(comm, caller)
    allgatherv.gather_equal(comm, caller, "f8", count)


def repeat_until_failure(comm, caller, operation, length):
    """Return what was raised, when, what later calls raised, and how long those took."""
    prepare(comm, caller)
    while True:
        met = meet_failure(comm, caller, operation, length=length)
        if met[0] is not None:
            return met
