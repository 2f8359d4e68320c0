"""MPI's C functions in @njit code, by name, as a kernel calls them: no Python between two calls.

Handles and addresses are 64-bit integers. MPICH's handles are 32 bits wide: the x86-64 and aarch64
calling conventions ignore the upper half of the register in which they travel.
"""

from __future__ import annotations

import ctypes

import numpy as np
from llvmlite import binding
from numba import njit, types

from bench.ranks.njit.loops import Buffers

WORDS = {
    "MPI_Barrier": 1,
    "MPI_Bcast": 5,
    "MPI_Allreduce": 6,
    "MPI_Allgather": 7,
    "MPI_Start": 1,
    "MPI_Wait": 2,
}
STATUS_BYTES = 128  # more than any library's MPI_Status


def _function(name: str):
    return types.ExternalFunction(name, types.int32(*[types.int64] * WORDS[name]))


_barrier, _bcast, _allreduce = map(_function, ("MPI_Barrier", "MPI_Bcast", "MPI_Allreduce"))
_allgather, _start, _wait = map(_function, ("MPI_Allgather", "MPI_Start", "MPI_Wait"))


def register(mpi) -> None:
    """Tell LLVM where the functions of the library are that mpi4py has loaded."""
    library = ctypes.CDLL(mpi.__file__)
    for name in WORDS:
        binding.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)


def words_of(mpi, world, operation: str, buffers: Buffers) -> np.ndarray:
    """Return the C arguments of a blocking collective of float64."""
    handle = mpi._handleof
    double, comm, count = handle(mpi.DOUBLE), handle(world), buffers.send.size
    at, to = buffers.send.ctypes.data, buffers.recv.ctypes.data
    words = {
        "barrier": [comm],
        "broadcast": [to, count, double, 0, comm],
        "allreduce": [at, to, count, double, handle(mpi.SUM), comm],
        "allgatherv": [at, count, double, to, count, double, comm],
    }[operation]
    return np.array(words, dtype=np.uint64).astype(np.int64)


@njit(nogil=True)
def loop_barrier(words, calls):
    code = 0
    for _ in range(calls):
        code |= _barrier(words[0])
    return code


@njit(nogil=True)
def loop_broadcast(words, calls):
    code = 0
    for _ in range(calls):
        code |= _bcast(words[0], words[1], words[2], words[3], words[4])
    return code


@njit(nogil=True)
def loop_allreduce(words, calls):
    code = 0
    for _ in range(calls):
        code |= _allreduce(words[0], words[1], words[2], words[3], words[4], words[5])
    return code


@njit(nogil=True)
def loop_allgather(words, calls):
    code = 0
    for _ in range(calls):
        code |= _allgather(words[0], words[1], words[2], words[3], words[4], words[5], words[6])
    return code


@njit(nogil=True)
def loop_persistent(request, status, calls):
    """Start and wait for a persistent request, of which this takes the address."""
    code = 0
    for _ in range(calls):
        code |= _start(request)
        code |= _wait(request, status)
    return code


LOOPS = {
    "barrier": loop_barrier,
    "broadcast": loop_broadcast,
    "allreduce": loop_allreduce,
    "allgatherv": loop_allgather,
}
