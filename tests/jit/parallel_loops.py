"""Collectives in ``prange``: refused if numba sees them; otherwise their errors are not lost."""

import numpy as np
from numba import TypingError, njit, prange

from cobre_comm import CollectiveFailed, InvalidCommunicator
from cobre_comm.testing.cases.raised import met, raises


@njit(cache=True)
def hide(comm, send, recv):
    """Call a collective in a function, so that numba does not see it in a parallel loop."""
    comm.allreduce(send, recv)


@njit(parallel=True, cache=True)
def last_is_wrong(comm, rows):
    """Call a collective with a wrong length in a thread of numba's; this thread cannot raise."""
    for i in prange(len(rows)):
        if i == len(rows) - 1:
            hide(comm, rows[i], rows[i, :2])


@njit(parallel=True, cache=True)
def ranks_of(comm, count):
    total = 0
    for _ in prange(count):
        total += comm.rank + comm.size
    return total


@njit(parallel=True)
def plainly(comm, rows):
    for i in prange(len(rows)):
        comm.allreduce(rows[i], rows[i])


@njit(parallel=True, cache=True)
def hidden(comm, rows, results):
    for i in prange(len(rows)):
        hide(comm, rows[i], results[i])


def refused(comm):
    """Return numba's error for a collective that stands in a parallel loop itself."""
    assert ranks_of(comm, 8) == 8 * (comm.rank + comm.size)
    return str(raises(TypingError, plainly, comm, np.ones((8, 3))))


def wrong_on_rank_0(comm):
    """Let a thread of rank 0 pass a wrong length; return the error of each rank's next call."""
    own = comm.split_local()
    if own.rank == 0:
        last_is_wrong(own, np.ones((8, 3)))
    return met(own.barrier)


def lost(comm):
    """Return the number of wrong rows if neither the loop nor the next call has raised."""
    own = comm.split_local()
    rows, results = np.ones((64, 3)), np.zeros((64, 3))
    try:
        hidden(own, rows, results)
        own.barrier()
    except (SystemError, CollectiveFailed, InvalidCommunicator):
        return 0
    return int((results != own.size).any(axis=1).sum())


def loops(comm):
    return refused(comm), wrong_on_rank_0(comm), [lost(comm) for _ in range(5)]
