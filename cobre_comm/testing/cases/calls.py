"""How a Python caller calls each collective, and how a caller inside @njit code does.

``calls`` returns a function for each collective, and ``arguments`` returns valid arguments for it.
"""

from types import SimpleNamespace

import numpy as np
from numba import njit

from cobre_comm import ReduceOp

_BODIES = {
    "allgatherv": lambda comm, send, recv, counts, at: comm.allgatherv(send, recv, counts, at),
    "gatherv": lambda comm, send, recv, counts, displs, root=0: comm.gatherv(
        send, recv, counts, displs, root
    ),
    "allreduce": lambda comm, send, recv, op=ReduceOp.SUM: comm.allreduce(send, recv, op),
    "broadcast": lambda comm, buf, root=0: comm.broadcast(buf, root),
    "barrier": lambda comm: comm.barrier(),
    "exact_sum": lambda comm, values: comm.exact_sum(values),
    "stop_requested": lambda comm: comm.stop_requested(),
    "sum": lambda comm, x: comm.sum(x),
    "min": lambda comm, x: comm.min(x),
    "max": lambda comm, x: comm.max(x),
    "allgather": lambda comm, send, recv: comm.allgather(send, recv),
    "share": lambda comm, n: comm.share(n),
    "shares": lambda comm, n, width=1: comm.shares(n, width),
}
_PYTHON = {"abort": lambda comm, code: comm.abort(code)}
for _name, _body in _BODIES.items():
    _body.__qualname__ = _name  # part of numba's symbols, which no two cached functions may share
_COMPILED = {name: njit(cache=True, nogil=True)(body) for name, body in _BODIES.items()}


# The operations that most cases call. COLLECTIVES has one more collective that moves data.
OPERATIONS = ["allgatherv", "allreduce", "broadcast", "barrier"]
COLLECTIVES = [*OPERATIONS, "gatherv"]


def arguments(comm, operation, length=5, *, dtype="f8", op=ReduceOp.SUM, root=0):
    """Return valid arguments of a method, as one rank passes them."""
    size, send = comm.size, np.ones(length, dtype)
    blocks = np.zeros(size * length, dtype), np.full(size, length), length * np.arange(size)
    number = np.dtype(dtype).type(1).item()
    return {
        "allgatherv": (send, *blocks),
        "gatherv": (send, *(blocks if comm.rank == root else (None, None, None)), root),
        "allreduce": (send, np.zeros(length, dtype), op),
        "broadcast": (send, root),
        "barrier": (),
        "exact_sum": (np.ones(length),),
        "sum": (number,),
        "min": (number,),
        "max": (number,),
        "allgather": (send, blocks[0]),
        "share": (length,),
        "shares": (length,),
    }[operation]


def chosen(caller, rank):
    """Return the caller of a rank; with ``mixed``, odd ranks call from njit code."""
    return ("python", "njit")[rank % 2] if caller == "mixed" else caller


def calls(caller, rank=0):
    """Return the collectives as functions, for calls from Python or from njit code."""
    return SimpleNamespace(**{"python": _BODIES | _PYTHON, "njit": _COMPILED}[chosen(caller, rank)])


def by_caller(function, nogil=True):
    """Return a function and its compiled form, each under the name of its caller."""
    return {"python": function, "njit": njit(cache=True, nogil=nogil)(function)}
