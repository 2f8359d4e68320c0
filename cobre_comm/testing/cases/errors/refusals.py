"""One rank refuses its own wrong call: the others do not hang, and their error names that rank."""

from functools import partial

import numpy as np

from cobre_comm import CollectiveFailed, CommError, ReduceOp
from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import NEVER, QUICK, Case
from cobre_comm.testing.cases.raised import met, raises

# REFUSED: the errors that a rank finds by itself. THEN: what the rank does afterwards.
REFUSED = ["InvalidRoot", "InvalidBufferSize", "TypeError", "ValueError"]
THEN = ["barrier", "close"]


def _refused(comm, made, name):
    """Make a call that this rank knows to be wrong, while no other rank can know."""
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
    """Rank 1 refuses its own call while the others wait for it; return this rank's error."""
    made = calls(caller, comm.rank)
    comm.barrier()
    if comm.rank == 1:
        first = met(_refused, comm, made, name)
        if then == "close":
            comm.close()
        else:
            raises(CommError, made.barrier, comm)
        return first
    return met(made.allreduce, comm, np.ones(4), np.zeros(4), ReduceOp.SUM)


def refused_region_on_one(comm):
    """Rank 1 refuses its own call to make a region, before it communicates."""
    comm.barrier()
    first = met(comm.create_shared_region, -1 if comm.rank == 1 else 5)
    if comm.rank == 1:
        raises(CommError, comm.barrier)
    return first


def others_name_rank_1(ran):
    """Each other rank gets an error that names rank 1, whether rank 1 continues or closes."""
    name = ran.cell.arguments[0] if ran.cell.arguments else "ValueError"
    assert type(ran.values[1]).__name__ == name, f"rank 1 should get {name}: {ran.values[1]!r}"
    for rank, error in enumerate(ran.values):
        if rank != 1:
            assert isinstance(error, CollectiveFailed), f"rank {rank}: {error!r}"
            assert 1 in error.ranks if ran.size == 2 else error.ranks == (1,), str(error)


case = partial(
    Case, expect=others_name_rank_1, needs=("disagreement",), sizes=(3,), limit_s=20, fresh=True,
    buffers=("small",), check=NEVER, column="errors",
)  # fmt: skip
CASES = [
    case(
        "others_do_not_hang_for_a_refused_argument", refused_on_one,
        {"name": REFUSED, "then": THEN},
    ),
    case(
        "refused_on_one_rank", refused_on_one,
        {"name": ["InvalidBufferSize"], "then": ["barrier"]}, sizes=(2,), check=QUICK,
    ),
    case(
        "others_do_not_hang_for_a_refused_region", refused_region_on_one,
        needs=("regions", "disagreement"), callers=(),
    ),
]  # fmt: skip
