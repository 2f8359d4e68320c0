"""Loops of calls inside @njit: the same calls of ours and of numba-mpi.

numba-mpi (GPL-3.0) is used for measurements alone; cobre_comm does not use it.
"""

from __future__ import annotations

from collections.abc import Callable

from numba import njit


@njit(nogil=True)
def our_barrier(comm, send, recv, counts, displs, calls):
    for _ in range(calls):
        comm.barrier()


@njit(nogil=True)
def our_allreduce(comm, send, recv, counts, displs, calls):
    for _ in range(calls):
        comm.allreduce(send, recv)


@njit(nogil=True)
def our_allreduce_and_barrier(comm, send, recv, counts, displs, calls):
    for _ in range(calls):
        comm.allreduce(send, recv)
        comm.barrier()


@njit(nogil=True)
def our_broadcast(comm, send, recv, counts, displs, calls):
    for _ in range(calls):
        comm.broadcast(send)


@njit(nogil=True)
def our_allgatherv(comm, send, recv, counts, displs, calls):
    for _ in range(calls):
        comm.allgatherv(send, recv, counts, displs)


OURS = {
    "barrier": our_barrier,
    "allreduce": our_allreduce,
    "allreduce + barrier": our_allreduce_and_barrier,
    "broadcast": our_broadcast,
    "allgatherv": our_allgatherv,
}


def numba_mpi_loops() -> dict[str, Callable]:
    """Return loops of numba-mpi's calls; the status of each call must stay 0."""
    import numba_mpi

    @njit(nogil=True)
    def barrier(send, recv, calls):
        status = 0
        for _ in range(calls):
            status |= numba_mpi.barrier()
        return status

    @njit(nogil=True)
    def allreduce(send, recv, calls):
        status = 0
        for _ in range(calls):
            status |= numba_mpi.allreduce(send, recv)
        return status

    @njit(nogil=True)
    def allreduce_and_barrier(send, recv, calls):
        status = 0
        for _ in range(calls):
            status |= numba_mpi.allreduce(send, recv)
            status |= numba_mpi.barrier()
        return status

    @njit(nogil=True)
    def broadcast(send, recv, calls):
        status = 0
        for _ in range(calls):
            status |= numba_mpi.bcast(send, 0)
        return status

    @njit(nogil=True)
    def allgather(send, recv, calls):
        status = 0
        for _ in range(calls):
            status |= numba_mpi.allgather(send, recv, send.size)
        return status

    return {
        "barrier": barrier,
        "allreduce": allreduce,
        "allreduce + barrier": allreduce_and_barrier,
        "broadcast": broadcast,
        "allgatherv": allgather,
    }
