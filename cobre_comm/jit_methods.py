"""The communicator's methods in ``@njit`` code: check, call the kernel, raise.

Each overload sees the types of the arguments. What is wrong with them becomes an implementation
that raises when it runs, with the message Python would give; else the implementation reads the
addresses, calls the kernel through the state, and raises :class:`~cobre_comm.failure.Failure` for
a status other than OK. With ``local`` there is nothing to call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cobre_kernels import dtypes, layout, status
from cobre_kernels.arguments import check_allreduce
from cobre_kernels.atomics import copy_bytes, peek
from cobre_kernels.exact_sum import WORDS
from cobre_kernels.fold import SUM
from cobre_kernels.indirect import call3, call5, call8, call11
from cobre_kernels.kind import ALLGATHERV, ALLREDUCE, BARRIER, BROADCAST, EXACT_SUM, FENCE
from numba.core import types
from numba.extending import intrinsic, overload_attribute, overload_method, register_jitable
from numba.np.numpy_support import as_dtype

from cobre_comm.checks import dtype_word
from cobre_comm.errors import InvalidRoot
from cobre_comm.failure import Failure
from cobre_comm.jit import CommType, LocalCommType, RegionType
from cobre_comm.jit_arguments import (
    array_problem,
    contiguity,
    error_class,
    integer_reader,
    is_integer,
    pair_problem,
    table,
)


@intrinsic
def _state_of(typingctx: Any, comm: Any) -> Any:
    return types.int64(comm), lambda context, builder, signature, args: args[0]


@intrinsic(prefer_literal=True)
def _region_field(typingctx: Any, region: Any, name: Any) -> Any:
    field = name.literal_value
    result = region.view if field == "view" else types.int64

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from numba.core import cgutils
        from numba.core.imputils import impl_ret_borrowed

        struct = cgutils.create_struct_proxy(region)(context, builder, value=args[0])
        return impl_ret_borrowed(context, builder, result, getattr(struct, field))

    return result(region, name), codegen


@overload_attribute(CommType, "rank")
def _rank(comm):
    if isinstance(comm, LocalCommType):
        return lambda comm: 0
    return lambda comm: peek(_state_of(comm) + layout.RANK)


@overload_attribute(CommType, "size")
def _size(comm):
    if isinstance(comm, LocalCommType):
        return lambda comm: 1
    return lambda comm: peek(_state_of(comm) + layout.COMM_SIZE)


@overload_attribute(CommType, "is_leader")
def _is_leader(comm):
    if isinstance(comm, LocalCommType):
        return lambda comm: True
    return lambda comm: peek(_state_of(comm) + layout.IS_LEADER) != 0


@overload_method(CommType, "barrier")
def _barrier(comm):
    if isinstance(comm, LocalCommType):
        return lambda comm: None

    def barrier(comm):
        state = _state_of(comm)
        outcome = call3(peek(state + layout.SYNCHRONISE_KERNEL), state, BARRIER, 0)
        if outcome != status.OK:
            raise Failure(state, BARRIER, outcome, 0, 0)

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
        state = _state_of(comm)
        source = to_int(root)
        if not is_contiguous(buf):
            raise ValueError("broadcast: buf is not C-contiguous")
        if not writable and source != peek(state + layout.RANK):
            raise ValueError("broadcast: buf is read-only; pass a writable array")
        kernel = peek(state + layout.BROADCAST_KERNEL)
        outcome = call5(kernel, state, buf.ctypes.data, buf.size * buf.itemsize, dtype, source)
        if outcome != status.OK:
            raise Failure(state, BROADCAST, outcome, source, 0)

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
        state, code = _state_of(comm), to_int(op)
        source, target = send.ctypes.data, recv.ctypes.data
        if is_local:
            outcome = check_allreduce(source, send.size, target, recv.size, itemsize, dtype, code)
            if outcome == status.OK and source != target:
                copy_bytes(target, source, send.size * itemsize)
        else:
            kernel = peek(state + layout.ALLREDUCE_KERNEL)
            outcome = call8(
                kernel, state, source, send.size, target, recv.size, itemsize, dtype, code
            )
        if outcome != status.OK:
            raise Failure(state, ALLREDUCE, outcome, send.size, recv.size)

    return allreduce


@register_jitable
def _allgatherv_numbers(outcome, rank, send_size, recv_size, counts, displs):
    """Return the two numbers that explain an argument error."""
    if outcome == status.SEND_NOT_COUNT:
        return send_size, counts[rank]
    if outcome == status.BLOCK_OUTSIDE:
        end = 0
        for r in range(len(counts)):
            end = max(end, counts[r] + displs[r])
        return end, recv_size
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
        state = _state_of(comm)
        lengths, places = as_counts(counts), as_displs(displs)
        outcome = call11(
            peek(state + layout.ALLGATHERV_KERNEL),
            state,
            send.ctypes.data,
            send.size,
            recv.ctypes.data,
            recv.size,
            itemsize,
            dtype,
            lengths.ctypes.data,
            places.ctypes.data,
            lengths.size,
            places.size,
        )
        # Reading the tables here also keeps them alive until the kernel is done with them.
        rank = peek(state + layout.RANK)
        a, b = _allgatherv_numbers(outcome, rank, send.size, recv.size, lengths, places)
        if outcome != status.OK:
            raise Failure(state, ALLGATHERV, outcome, a, b)

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
        state = _state_of(comm)
        digits = np.zeros(WORDS, dtype=np.int64)
        at = digits.ctypes.data
        call5(
            peek(state + layout.EXACT_ADD_KERNEL),
            state,
            values.ctypes.data,
            values.size,
            dtype,
            at,
        )
        merge = peek(state + layout.ALLREDUCE_KERNEL)
        outcome = call8(merge, state, at, WORDS, at, WORDS, digits.itemsize, dtypes.EXACT, SUM)
        if outcome != status.OK:
            raise Failure(state, EXACT_SUM, outcome, 0, 0)
        call3(peek(state + layout.EXACT_ROUND_KERNEL), state, at, at)
        return digits.view(np.float64)[0]

    return exact_sum


@overload_method(RegionType, "as_slice")
def _as_slice(region):
    return lambda region: _region_field(region, "view")


@overload_method(RegionType, "fence")
def _fence(region):
    if not region.synchronises:
        return lambda region: None

    def fence(region):
        state = _region_field(region, "state")
        kernel = peek(state + layout.SYNCHRONISE_KERNEL)
        outcome = call3(kernel, state, FENCE, _region_field(region, "identity"))
        if outcome != status.OK:
            raise Failure(state, FENCE, outcome, 0, 0)

    return fence
