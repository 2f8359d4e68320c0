"""shrink: the surviving ranks of a broken communicator get a communicator of their own."""

import threading
import time
from functools import partial

import numpy as np

from cobre_comm import CollectiveFailed, InvalidCommunicator, ReduceOp
from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import NEVER, Case
from cobre_comm.testing.cases.memory.regions import populate_by_block
from cobre_comm.testing.cases.mixed.sequences import four_in_a_row
from cobre_comm.testing.cases.raised import raises

SOON_S = 20.0
SEES_A_FAILURE = {"none": False, "disagreement": True}


def shrink(comm, caller, failure):
    """If no rank has died, all continue, and regions of the old communicator stay readable."""
    region = comm.create_shared_region(comm.size)
    mine = slice(comm.rank, comm.rank + 1)
    region.part(mine.start, mine.stop)[:] = comm.rank + 1.0
    region.fence()
    work = comm.create_work(4)
    if SEES_A_FAILURE[failure] and comm.size > 1:
        values = np.ones(3 + comm.rank)
        raises(CollectiveFailed, comm.allreduce, values, values)
    if comm.backend == "mpi":
        told = str(raises(CollectiveFailed, comm.shrink))
        assert "--max-restarts" in told, told
        return
    made = comm.shrink()
    assert (made.rank, made.size, made.backend) == (comm.rank, comm.size, comm.backend)
    for _ in range(2):
        four_in_a_row(made, caller)
    populate_by_block(made, caller, 100)
    is_whole = not (SEES_A_FAILURE[failure] and comm.size > 1)
    values, call = np.ones(3), calls(caller, comm.rank)
    for use in (
        region.fence, work.claim, comm.stop_requested, partial(comm.create_work, 2),
        partial(comm.split, 0), partial(call.barrier, comm), partial(call.broadcast, comm, values),
        partial(call.allreduce, comm, values, values, ReduceOp.SUM),
    ):  # fmt: skip
        told = str(raises(InvalidCommunicator, use))
        assert ("shrink has ended this communicator" in told) == is_whole, told
    told = str(raises(InvalidCommunicator, comm.shrink))
    assert "shrunk already" in told, told
    assert region.as_slice()[mine].tolist() == [comm.rank + 1.0]
    comm.close()
    raises(InvalidCommunicator, comm.shrink)
    four_in_a_row(made, caller)
    assert region.as_slice()[mine].tolist() == [comm.rank + 1.0]
    made.close()


def in_use(comm, caller):
    """While another thread is inside a collective, shrink is an error and changes nothing."""
    if comm.backend == "mpi" or comm.size == 1:
        return
    beside = comm.split(0)
    if comm.rank > 0:
        thread = threading.Thread(target=calls(caller, comm.rank).barrier, args=(comm,))
        thread.start()
        awaits_rank_0(comm)
        told = str(raises(InvalidCommunicator, comm.shrink))
        assert told.startswith("shrink: another thread is inside a collective"), told
        beside.barrier()
        thread.join()
    else:
        beside.barrier()
        comm.barrier()
    assert comm.sum(1) == comm.size
    made = comm.shrink()
    four_in_a_row(made, caller)
    made.close()
    beside.close()


def awaits_rank_0(comm):
    """Wait until a thread of this rank is inside of a collective."""
    deadline = time.monotonic() + SOON_S
    while True:
        try:
            comm.enter_phase(0)
        except InvalidCommunicator:
            return
        assert time.monotonic() < deadline
        time.sleep(0.001)


case = partial(Case, needs=("shrink", "regions", "work", "disagreement"), column="regions")
CASES = [
    case("shrink", shrink, {"failure": [*SEES_A_FAILURE]}, fresh=True, check=NEVER),
    case("in_use", in_use, {}, fresh=True, check=NEVER),
]  # fmt: skip
