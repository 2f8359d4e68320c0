"""The collectives as a Python caller and as a caller inside @njit code makes them."""

from types import SimpleNamespace

from numba import njit

from cobre_comm import ReduceOp


def _allgatherv(comm, send, recv, counts, displs):
    comm.allgatherv(send, recv, counts, displs)


def _allreduce(comm, send, recv, op=ReduceOp.SUM):
    comm.allreduce(send, recv, op)


def _gatherv(comm, send, recv, counts, displs, root=0):
    comm.gatherv(send, recv, counts, displs, root)


def _broadcast(comm, buf, root=0):
    comm.broadcast(buf, root)


def _barrier(comm):
    comm.barrier()


def _exact_sum(comm, values):
    return comm.exact_sum(values)


def _stop_requested(comm):
    return comm.stop_requested()


def _sum(comm, x):
    return comm.sum(x)


def _min(comm, x):
    return comm.min(x)


def _max(comm, x):
    return comm.max(x)


def _allgather(comm, send, recv):
    comm.allgather(send, recv)


_BODIES = {
    "allgatherv": _allgatherv,
    "gatherv": _gatherv,
    "allreduce": _allreduce,
    "broadcast": _broadcast,
    "barrier": _barrier,
    "exact_sum": _exact_sum,
    "stop_requested": _stop_requested,
    "sum": _sum,
    "min": _min,
    "max": _max,
    "allgather": _allgather,
}
_COMPILED = {name: njit(cache=True, nogil=True)(body) for name, body in _BODIES.items()}


def calls(caller, rank=0):
    """Return the collectives as functions of the communicator; ``mixed`` is each rank in turn."""
    if caller == "mixed":
        caller = ("python", "njit")[rank % 2]
    return SimpleNamespace(**{"python": _BODIES, "njit": _COMPILED}[caller])
