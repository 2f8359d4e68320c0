"""``allreduce`` in ``@njit`` code."""

from __future__ import annotations

import numpy as np
from cobre_kernels.collective import dtypes, status
from cobre_kernels.collective.calls import ALLREDUCE, Allreduce
from cobre_kernels.collective.checks import check_allreduce
from cobre_kernels.collective.comm import IDLE
from cobre_kernels.collective.reduction.fold import gives_truth
from cobre_kernels.machine.atomics import copy_bytes, load_acquire
from cobre_kernels.machine.compiling.numba_internals import as_dtype

from cobre_comm.arguments.mistakes import DTYPE, OP
from cobre_comm.arguments.slow_path import REDUCIBLE, dtype_word
from cobre_comm.jit.arguments import contiguity, integer_reader, is_integer, pair_problem, refusal
from cobre_comm.jit.attributes import collective_method
from cobre_comm.jit.fields import entering, record_of
from cobre_comm.jit.problems import Problem

enter = entering(ALLREDUCE)


def _allreduce_problem(send, recv, op):
    problem = pair_problem("allreduce", send, recv)
    if problem is not None:
        return problem
    if not dtypes.is_reducible(dtype_word(as_dtype(send.dtype))):
        return Problem(f"allreduce: dtype {send.dtype} cannot be reduced; {REDUCIBLE}", DTYPE)
    if not is_integer(op):
        return Problem(f"allreduce: op must be a ReduceOp, such as ReduceOp.SUM, got {op}", OP)
    return None


@collective_method("allreduce")
def _allreduce(comm, send, recv, op=0):
    problem = _allreduce_problem(send, recv, op)
    if problem is not None:
        refuse = refusal(ALLREDUCE, problem)
        return lambda comm, send, recv, op=0: refuse(comm)
    send_contiguous, recv_contiguous = contiguity(send), contiguity(recv)
    to_int = integer_reader(op)
    numpy_dtype = as_dtype(send.dtype)
    dtype, itemsize = dtype_word(numpy_dtype), numpy_dtype.itemsize
    is_local = not comm.synchronises

    def allreduce(comm, send, recv, op=0):
        record = record_of(comm)
        source, target = np.int64(send.ctypes.data), np.int64(recv.ctypes.data)
        send_count = send.size
        if not send_contiguous(send) or not recv_contiguous(recv):
            send_count = -status.NOT_CONTIGUOUS
        call = Allreduce(source, send_count, target, recv.size, itemsize, dtype, to_int(op))
        outcome = status.IS_CLOSED
        if is_local and load_acquire(record.guard) == IDLE and not gives_truth(call.op):
            outcome = check_allreduce(call)
            if outcome == status.OK and source != target:
                copy_bytes(target, source, send.size * itemsize)
        if outcome != status.OK:
            enter(record, call)

    return allreduce
