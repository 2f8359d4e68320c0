"""shrink: the ranks that are left of a broken communicator get one of their own."""

from functools import partial

import numpy as np

from cobre_comm import CollectiveFailed, InvalidCommunicator
from cobre_comm.testing.cases.case import NEVER, Case
from cobre_comm.testing.cases.memory.regions import populate_by_block
from cobre_comm.testing.cases.mixed.sequences import four_in_a_row
from cobre_comm.testing.cases.raised import raises

SEES_A_FAILURE = {"none": False, "disagreement": True}


def shrink(comm, caller, failure):
    """No rank has died: all go on together, and what the old communicator has made stays."""
    region = comm.create_shared_region(comm.size)
    mine = slice(comm.rank, comm.rank + 1)
    region.block(mine.start, mine.stop)[:] = comm.rank + 1.0
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
    if comm.backend != "local":
        raises(InvalidCommunicator, comm.barrier)
        raises(InvalidCommunicator, work.claim)
        told = str(raises(InvalidCommunicator, comm.shrink))
        assert "shrunk already" in told, told
    assert region.as_slice()[mine].tolist() == [comm.rank + 1.0]
    comm.close()
    raises(InvalidCommunicator, comm.shrink)
    four_in_a_row(made, caller)
    assert region.as_slice()[mine].tolist() == [comm.rank + 1.0]
    made.close()


case = partial(Case, needs=("shrink", "regions", "work", "disagreement"), column="regions")
CASES = [
    case("shrink", shrink, {"failure": [*SEES_A_FAILURE]}, fresh=True, check=NEVER),
]  # fmt: skip
