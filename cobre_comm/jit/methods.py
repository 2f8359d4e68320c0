"""The communicator's methods in ``@njit`` code: check, run the entry, raise.

Each overload sees the types of the arguments. Wrong types give an implementation that raises when
it runs, with the message that Python gives. Otherwise the implementation makes the call, runs the
entry by its address, and raises :class:`~cobre_comm.failure.Failure` for a status other than OK.
Over ``local``, ``barrier``, ``broadcast`` and ``allreduce`` run an entry if something is wrong, and
otherwise none. A call of wrong types goes to the record's ``refuse``. What else only a method can
see reaches the entry as a length below zero.
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
    STOP,
    Allgatherv,
    Allreduce,
    Barrier,
    Broadcast,
    ExactSum,
    Refusal,
)
from cobre_kernels.collective.checks import check_allreduce
from cobre_kernels.collective.comm import IDLE
from cobre_kernels.collective.guard import usability
from cobre_kernels.collective.reduction.exact_sum import WORDS
from cobre_kernels.collective.reduction.fold import LAND
from cobre_kernels.machine.atomics import copy_bytes, load_acquire, load_relaxed
from cobre_kernels.machine.kernel import run
from numba.core import types
from numba.extending import overload_attribute, overload_method, register_jitable
from numba.np.numpy_support import as_dtype

from cobre_comm.failure import Failure
from cobre_comm.jit.arguments import (
    array_problem,
    blocks_problem,
    contiguity,
    error_class,
    integer_reader,
    is_integer,
    pair_problem,
    table,
)
from cobre_comm.jit.records import explain, record_of
from cobre_comm.jit.types import CommType, LocalCommType
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


@register_jitable
def refused(record, operation, outcome):
    """Refuse a call that reaches no entry; a thread that cannot raise breaks the communicator."""
    run(record.refuse, record, Refusal(operation, outcome, 0))


@overload_method(CommType, "barrier")
def _barrier(comm):
    is_local = isinstance(comm, LocalCommType)

    def barrier(comm):
        record = record_of(comm)
        outcome = status.OK
        if not is_local or load_acquire(record.guard) != IDLE:
            outcome = run(record.barrier, record, Barrier(BARRIER, 0))
        if outcome != status.OK:
            explain(record, BARRIER, outcome, 0, 0)
            raise Failure

    return barrier


@overload_method(CommType, "broadcast")
def _broadcast(comm, buf, root=0):
    problem = array_problem("broadcast", "buf", buf, writable=False)
    if not problem and not is_integer(root):
        problem = f"broadcast: root must be an integer, got {root}"
    if problem:

        def refuse(comm, buf, root=0):
            refused(record_of(comm), BROADCAST, status.REFUSED)
            raise TypeError(problem)

        return refuse
    is_contiguous, to_int = contiguity(buf), integer_reader(root)
    dtype, writable = dtype_word(as_dtype(buf.dtype)), buf.mutable
    is_local = isinstance(comm, LocalCommType)

    def broadcast(comm, buf, root=0):
        record = record_of(comm)
        source = to_int(root)
        size_bytes = buf.size * buf.itemsize
        if not is_contiguous(buf):
            size_bytes = -status.NOT_CONTIGUOUS
        elif not writable and source != record.rank:
            size_bytes = -status.READ_ONLY
        call = Broadcast(buf.ctypes.data, size_bytes, dtype, source)
        outcome = status.OK
        if not is_local or load_acquire(record.guard) != IDLE or size_bytes < 0 or source != 0:
            outcome = run(record.broadcast, record, call)
        if outcome != status.OK:
            explain(record, BROADCAST, outcome, source, 0)
            raise Failure

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
            refused(record_of(comm), ALLREDUCE, status.REFUSED)
            raise error(problem)

        return refuse
    send_contiguous, recv_contiguous = contiguity(send), contiguity(recv)
    to_int = integer_reader(op)
    numpy_dtype = as_dtype(send.dtype)
    dtype, itemsize = dtype_word(numpy_dtype), numpy_dtype.itemsize
    is_local = isinstance(comm, LocalCommType)

    def allreduce(comm, send, recv, op=0):
        record = record_of(comm)
        source, target = np.int64(send.ctypes.data), np.int64(recv.ctypes.data)
        send_count = send.size
        if not send_contiguous(send) or not recv_contiguous(recv):
            send_count = -status.NOT_CONTIGUOUS
        call = Allreduce(source, send_count, target, recv.size, itemsize, dtype, to_int(op))
        outcome = status.IS_CLOSED
        if is_local and load_acquire(record.guard) == IDLE and call.op < LAND:
            outcome = check_allreduce(call)
            if outcome == status.OK and source != target:
                copy_bytes(target, source, send.size * itemsize)
        if outcome != status.OK:
            outcome = run(record.allreduce, record, call)
        if outcome == status.NOT_LOADED:
            explain(record, ALLREDUCE, outcome, 0, 0)
            outcome = run(record.allreduce, record, call)
        if outcome != status.OK:
            if outcome != status.NOT_LOADED:
                explain(record, ALLREDUCE, outcome, send.size, recv.size)
            raise Failure

    return allreduce


@register_jitable
def blocks_numbers(outcome, rank, sizes, counts, displs):
    """Return the two numbers that explain an argument error."""
    if outcome == status.SEND_NOT_COUNT:
        return sizes[0], counts[rank]
    if outcome == status.BLOCK_OUTSIDE:
        end = 0
        for r in range(len(counts)):
            end = max(end, counts[r] + displs[r])
        return end, sizes[1]
    if outcome == status.NEGATIVE:
        lowest = 0
        for r in range(len(counts)):
            lowest = min(lowest, counts[r], displs[r])
        return lowest, 0
    return len(counts), len(displs)


@overload_method(CommType, "allgatherv")
def _allgatherv(comm, send, recv, counts, displs):
    problem, error = blocks_problem("allgatherv", (send, recv, counts, displs))
    if problem:

        def refuse(comm, send, recv, counts, displs):
            refused(record_of(comm), ALLGATHERV, status.REFUSED)
            raise error(problem)

        return refuse
    as_counts, as_displs = table(counts), table(displs)
    send_contiguous, recv_contiguous = contiguity(send), contiguity(recv)
    numpy_dtype = as_dtype(send.dtype)
    dtype, itemsize = dtype_word(numpy_dtype), numpy_dtype.itemsize

    def allgatherv(comm, send, recv, counts, displs):
        record, send_count = record_of(comm), send.size
        if not send_contiguous(send) or not recv_contiguous(recv):
            send_count = -status.NOT_CONTIGUOUS
        lengths, counts_fit = as_counts(counts)
        displacements, displs_fit = as_displs(displs)
        counts_len = lengths.size if counts_fit and displs_fit else -status.UNFIT
        call = Allgatherv(
            send.ctypes.data, send_count, recv.ctypes.data, recv.size, itemsize, dtype,
            lengths.ctypes.data, displacements.ctypes.data, counts_len, displacements.size,
        )  # fmt: skip
        outcome = run(record.allgatherv, record, call)
        # Reading the tables here also keeps them alive until the entry is done with them.
        sizes = (send.size, recv.size)
        a, b = blocks_numbers(outcome, record.rank, sizes, lengths, displacements)
        if outcome != status.OK:
            explain(record, ALLGATHERV, outcome, a, b)
            raise Failure

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
            refused(record_of(comm), EXACT_SUM, status.REFUSED)
            raise TypeError(problem)

        return refuse
    is_contiguous, dtype = contiguity(values), dtype_word(as_dtype(values.dtype))

    def exact_sum(comm, values):
        count = values.size
        if not is_contiguous(values):
            count = -status.NOT_CONTIGUOUS
        elif values.ctypes.data % values.itemsize != 0:
            count = -status.UNALIGNED
        record = record_of(comm)
        digits = np.zeros(WORDS, dtype=np.int64)
        call = ExactSum(values.ctypes.data, count, dtype, digits.ctypes.data)
        outcome = run(record.exact_sum, record, call)
        if outcome != status.OK:
            explain(record, EXACT_SUM, outcome, 0, 0)
            raise Failure
        return digits.view(np.float64)[0]

    return exact_sum


@overload_method(CommType, "stop_requested")
def _stop_requested(comm):
    is_local = isinstance(comm, LocalCommType)

    def stop_requested(comm):
        record = record_of(comm)
        outcome = usability(record)
        if outcome != status.OK:
            explain(record, BARRIER, outcome, 0, 0)
            raise Failure
        if is_local:  # whose collectives may have compiled to nothing
            return load_relaxed(record.stop.requested) != 0
        return record.signature & STOP != 0

    return stop_requested
