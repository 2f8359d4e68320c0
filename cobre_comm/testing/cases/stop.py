"""stop_requested: what one rank is asked, all ranks know after the same collective."""

import signal
import threading

import numpy as np

from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import BOTH, Case, Slow

LONG = 3000  # of float64; more than a chunk of small buffers, and than fits behind a header


def operations(comm, call):
    """Return a use of each collective, by name."""
    small, large = np.arange(3.0), np.arange(float(LONG))
    everyone, counts = np.zeros(3 * comm.size), np.full(comm.size, 3)
    return {
        "barrier": lambda: call.barrier(comm),
        "allreduce": lambda: call.allreduce(comm, small, np.zeros(3)),
        "long allreduce": lambda: call.allreduce(comm, large, np.zeros(LONG)),
        "allgatherv": lambda: call.allgatherv(
            comm, small, everyone, counts, np.cumsum(counts) - counts
        ),
        "broadcast": lambda: call.broadcast(comm, small, comm.size - 1),
        "long broadcast": lambda: call.broadcast(comm, large, 0),
        "exact_sum": lambda: call.exact_sum(comm, small),
    }


def asked(comm, caller, name, who):
    """One rank gets a signal before the second step; return what this one is told after each."""
    told = []
    call = calls(caller, comm.rank)
    use = operations(comm, call)[name]
    comm.take_signals([signal.SIGTERM])
    for step in range(3):
        if step == 1 and comm.rank == who % comm.size:
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        use()
        told.append(call.stop_requested(comm))
    return told


def all_know_after_the_step(ran):
    for rank, told in enumerate(ran.values):
        assert told == [False, True, True], f"rank {rank} was told {told}"


def asked_before_a_fence(comm, caller):
    """A fence carries no request; the next collective does."""
    call = calls(caller, comm.rank)
    with comm.create_shared_region(1) as region:
        comm.take_signals([signal.SIGTERM])
        if comm.rank == 0:
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        region.fence()
        assert not call.stop_requested(comm)
        call.barrier(comm)
        assert call.stop_requested(comm)


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
]  # fmt: skip
