"""stop_requested: after a signal to one rank, all ranks know of it after the same collective."""

import signal
import threading

from cobre_comm import InvalidCommunicator
from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import BOTH, NEVER, Case, Slow
from cobre_comm.testing.cases.faults.calling import collective
from cobre_comm.testing.cases.raised import raises

LONG = 3000  # float64: more than a small buffer's chunk, and too long to travel behind a header


def asked(comm, caller, name, who):
    """One rank gets a signal before the second step; return stop_requested after each step."""
    told, last = [], comm.size - 1
    is_long, operation = name.startswith("long "), name.removeprefix("long ")
    comm._take_signals([signal.SIGTERM])
    for step in range(3):
        if step == 1 and comm.rank == who % comm.size:
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        collective(comm, caller, operation, LONG if is_long else 3, root=0 if is_long else last)
        told.append(calls(caller, comm.rank).stop_requested(comm))
    return told


def all_know_after_the_step(ran):
    for rank, told in enumerate(ran.values):
        assert told == [False, True, True], f"rank {rank} was told {told}"


def asked_before_a_fence(comm, caller):
    """A fence does not carry a request to stop; the next collective does."""
    call = calls(caller, comm.rank)
    with comm.create_shared_region(1) as region:
        comm._take_signals([signal.SIGTERM])
        if comm.rank == 0:
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        region.fence()
        assert not call.stop_requested(comm)
        call.barrier(comm)
        assert call.stop_requested(comm)


def asked_after_a_shrink(comm, caller):
    """The communicator that shrink returns takes the signals that the old communicator took."""
    if comm.backend == "mpi":
        return  # over MPI shrink is refused
    comm._take_signals([signal.SIGTERM])
    left = comm.shrink()
    comm.close()
    call = calls(caller, left.rank)
    call.barrier(left)
    assert not call.stop_requested(left)
    if left.rank == 0:
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    call.barrier(left)
    assert call.stop_requested(left)
    left.close()


def asked_of_a_closed_one(comm, caller):
    comm.barrier()
    comm.close()
    told = raises(InvalidCommunicator, calls(caller, comm.rank).stop_requested, comm)
    assert "closed" in str(told), told


CASES = [
    Case(
        "known_after_the_same_collective", asked,
        {
            "name": [
                "barrier", "long allreduce", "broadcast",
                *map(Slow, ("allreduce", "allgatherv", "long broadcast", "exact_sum")),
            ],
            "who": [0, -1],
        },
        callers=BOTH, buffers=("default", "small"), expect=all_know_after_the_step,
        needs=("stop",), fresh=True,
    ),
    Case(
        "fence_carries_none", asked_before_a_fence, sizes=(2, 3), needs=("stop", "regions"),
        fresh=True,
    ),
    Case(
        "kept_by_shrink", asked_after_a_shrink, sizes=(1, 2), needs=("stop", "shrink"), fresh=True,
        check=NEVER,
    ),
    Case(
        "asked_of_a_closed_one", asked_of_a_closed_one, where="typed", needs=("stop",),
        fresh=True, check=NEVER,
    ),
]  # fmt: skip
