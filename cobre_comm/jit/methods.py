"""The communicator's methods in ``@njit`` code: check, run the entry, raise.

Each overload sees the types of the arguments. Wrong types give an implementation that raises when
it runs, with the message that Python gives. Otherwise the implementation makes the call, runs the
entry by its address, and raises :class:`~cobre_comm.failure.Failure` for a status other than OK.
Over ``local`` only ``allgatherv`` and ``exact_sum`` run an entry.
"""

from __future__ import annotations

import numpy as np
from cobre_kernels.collective import dtypes, status
from cobre_kernels.collective.calls import (
    ALLGATHERV,
    ALLREDUCE,
    BARRIER,
    BROADCAST,
    EXACT_SUM,
    FENCE,
    Allgatherv,
    Allreduce,
    Barrier,
    Broadcast,
    ExactSum,
)
from cobre_kernels.collective.checks import check_allreduce
from cobre_kernels.collective.exact_sum import WORDS
from cobre_kernels.machine.atomics import copy_bytes
from cobre_kernels.machine.kernel import run
from numba.core import types
from numba.extending import overload_attribute, overload_method, register_jitable
from numba.np.numpy_support import as_dtype

from cobre_comm.errors import InvalidRoot
from cobre_comm.failure import Failure
from cobre_comm.jit.arguments import (
    array_problem,
    contiguity,
    error_class,
    integer_reader,
    is_integer,
    pair_problem,
    table,
)
from cobre_comm.jit.records import address_of, record_of, region_field
from cobre_comm.jit.types import CommType, LocalCommType, RegionType
from cobre_comm.slow_path import dtype_word


@overload_attribute(CommType, "rank")
def _rank(comm):
    if isinstance(comm, LocalCommType):
        return lambda comm: 0
    return lambda comm: record_of(comm).rank


@overload_attribute(CommType, "size")
def _size(comm):
    if isinstance(comm, LocalCommType):
        return lambda comm: 1
    return lambda comm: record_of(comm).size


@overload_attribute(CommType, "is_leader")
def _is_leader(comm):
    if isinstance(comm, LocalCommType):
        return lambda comm: True
    return lambda comm: record_of(comm).is_leader != 0


@overload_method(CommType, "barrier")
def _barrier(comm):
    if isinstance(comm, LocalCommType):
        return lambda comm: None

    def barrier(comm):
        record = record_of(comm)
        outcome = run(record.barrier, record, Barrier(BARRIER, 0))
        if outcome != status.OK:
            raise Failure(address_of(record), BARRIER, outcome, 0, 0)

    return barrier


@overload_method(CommType, "broadcast")
def _broadcast(comm, buf, root=0):
    problem = array_problem("broadcast", "buf", buf, writable=False)
    if not problem and not is_integer(root):
        problem = f"broadcast: root must be an integer, got {root}"
    if problem:

        def refuse(comm, buf, root=0):
            raise TypeError(problem)

        return refuse
    is_contiguous, to_int = contiguity(buf), integer_reader(root)
    dtype, writable = dtype_word(as_dtype(buf.dtype)), buf.mutable

    if isinstance(comm, LocalCommType):

        def nothing(comm, buf, root=0):
            if not is_contiguous(buf):
                raise ValueError("broadcast: buf is not C-contiguous")
            if to_int(root) != 0:
                raise InvalidRoot(to_int(root), 1)

        return nothing

    def broadcast(comm, buf, root=0):
        record = record_of(comm)
        source = to_int(root)
        if not is_contiguous(buf):
            raise ValueError("broadcast: buf is not C-contiguous")
        if not writable and source != record.rank:
            raise ValueError("broadcast: buf is read-only; pass a writable array")
        call = Broadcast(buf.ctypes.data, buf.size * buf.itemsize, dtype, source)
        outcome = run(record.broadcast, record, call)
        if outcome != status.OK:
            raise Failure(address_of(record), BROADCAST, outcome, source, 0)

    return broadcast


def _allreduce_problem(send, recv, op):
    problem = pair_problem("allreduce", send, recv)
    if problem:
        return problem
    if not dtypes.is_reducible(dtype_word(as_dtype(send.dtype))):
        return f"allreduce: dtype {send.dtype} cannot be reduced"
    return "" if is_integer(op) else f"allreduce: op must be a ReduceOp, got {op}"


@overload_method(CommType, "allreduce")
def _allreduce(comm, send, recv, op=0):
    problem = _allreduce_problem(send, recv, op)
    if problem:
        error = error_class(problem)

        def refuse(comm, send, recv, op=0):
            raise error(problem)

        return refuse
    send_contiguous, recv_contiguous = contiguity(send), contiguity(recv)
    to_int = integer_reader(op)
    numpy_dtype = as_dtype(send.dtype)
    dtype, itemsize = dtype_word(numpy_dtype), numpy_dtype.itemsize
    is_local = isinstance(comm, LocalCommType)

    def allreduce(comm, send, recv, op=0):
        if not send_contiguous(send) or not recv_contiguous(recv):
            raise ValueError("allreduce: send and recv must be C-contiguous")
        record, source, target = record_of(comm), send.ctypes.data, recv.ctypes.data
        call = Allreduce(source, send.size, target, recv.size, itemsize, dtype, to_int(op))
        if is_local:
            outcome = check_allreduce(call)
            if outcome == status.OK and source != target:
                copy_bytes(target, source, send.size * itemsize)
        else:
            outcome = run(record.allreduce, record, call)
        if outcome != status.OK:
            raise Failure(address_of(record), ALLREDUCE, outcome, send.size, recv.size)

    return allreduce


@register_jitable
def _allgatherv_numbers(outcome, rank, sizes, counts, displs):
    """Return the two numbers that explain an argument error."""
    if outcome == status.SEND_NOT_COUNT:
        return sizes[0], counts[rank]
    if outcome == status.BLOCK_OUTSIDE:
        end = 0
        for r in range(len(counts)):
            end = max(end, counts[r] + displs[r])
        return end, sizes[1]
    return len(counts), len(displs)


@overload_method(CommType, "allgatherv")
def _allgatherv(comm, send, recv, counts, displs):
    problem = pair_problem("allgatherv", send, recv)
    as_counts, as_displs = table(counts), table(displs)
    for name, argument, convert in (("counts", counts, as_counts), ("displs", displs, as_displs)):
        if not problem and convert is None:
            problem = f"allgatherv: {name} must be integers, one per rank, got {argument}"
    if problem:
        error = error_class(problem)

        def refuse(comm, send, recv, counts, displs):
            raise error(problem)

        return refuse
    send_contiguous, recv_contiguous = contiguity(send), contiguity(recv)
    numpy_dtype = as_dtype(send.dtype)
    dtype, itemsize = dtype_word(numpy_dtype), numpy_dtype.itemsize

    def allgatherv(comm, send, recv, counts, displs):
        if not send_contiguous(send) or not recv_contiguous(recv):
            raise ValueError("allgatherv: send and recv must be C-contiguous")
        record = record_of(comm)
        lengths, displacements = as_counts(counts), as_displs(displs)
        call = Allgatherv(
            send.ctypes.data, send.size, recv.ctypes.data, recv.size, itemsize, dtype,
            lengths.ctypes.data, displacements.ctypes.data, lengths.size, displacements.size,
        )  # fmt: skip
        outcome = run(record.allgatherv, record, call)
        # Reading the tables here also keeps them alive until the entry is done with them.
        sizes = (send.size, recv.size)
        a, b = _allgatherv_numbers(outcome, record.rank, sizes, lengths, displacements)
        if outcome != status.OK:
            raise Failure(address_of(record), ALLGATHERV, outcome, a, b)

    return allgatherv


def _exact_sum_problem(values):
    problem = array_problem("exact_sum", "values", values, writable=False)
    if not problem and values.dtype not in (types.float64, types.float32):
        problem = f"exact_sum: values must be float64 or float32, got {values.dtype}"
    return problem


@overload_method(CommType, "exact_sum")
def _exact_sum(comm, values):
    problem = _exact_sum_problem(values)
    if problem:

        def refuse(comm, values):
            raise TypeError(problem)

        return refuse
    is_contiguous, dtype = contiguity(values), dtype_word(as_dtype(values.dtype))

    def exact_sum(comm, values):
        if not is_contiguous(values):
            raise ValueError("exact_sum: values is not C-contiguous")
        if values.ctypes.data % values.itemsize != 0:
            raise ValueError("exact_sum: values is not aligned; pass a copy of it")
        record = record_of(comm)
        digits = np.zeros(WORDS, dtype=np.int64)
        call = ExactSum(values.ctypes.data, values.size, dtype, digits.ctypes.data)
        outcome = run(record.exact_sum, record, call)
        if outcome != status.OK:
            raise Failure(address_of(record), EXACT_SUM, outcome, 0, 0)
        return digits.view(np.float64)[0]

    return exact_sum


@overload_method(RegionType, "as_slice")
def _as_slice(region):
    return lambda region: region_field(region, "view")


@overload_method(RegionType, "fence")
def _fence(region):
    if not region.synchronises:
        return lambda region: None

    def fence(region):
        record = region_field(region, "comm")
        call = Barrier(FENCE, region_field(region, "identity"))
        outcome = run(record.barrier, record, call)
        if outcome != status.OK:
            raise Failure(address_of(record), FENCE, outcome, 0, 0)

    return fence
