"""``broadcast`` in ``@njit`` code."""

from __future__ import annotations

from cobre_kernels.collective import status
from cobre_kernels.collective.calls import BROADCAST, Broadcast
from cobre_kernels.collective.comm import IDLE
from cobre_kernels.machine.atomics import load_acquire
from cobre_kernels.machine.compiling.numba_internals import as_dtype

from cobre_comm.arguments.slow_path import dtype_word
from cobre_comm.jit.arguments import (
    array_problem,
    contiguity,
    integer_problem,
    integer_reader,
    refusal,
)
from cobre_comm.jit.attributes import collective_method
from cobre_comm.jit.fields import entering, record_of

enter = entering(BROADCAST)


@collective_method("broadcast")
def _broadcast(comm, buf, root=0):
    problem = array_problem("broadcast", "buf", buf, writable=False)
    problem = problem or integer_problem("broadcast", "root", root)
    if problem is not None:
        refuse = refusal(BROADCAST, problem)
        return lambda comm, buf, root=0: refuse(comm)
    is_contiguous, to_int = contiguity(buf), integer_reader(root)
    dtype, writable = dtype_word(as_dtype(buf.dtype)), buf.mutable
    is_local = not comm.synchronises

    def broadcast(comm, buf, root=0):
        record = record_of(comm)
        source = to_int(root)
        size_bytes = buf.size * buf.itemsize
        if not is_contiguous(buf):
            size_bytes = -status.NOT_CONTIGUOUS
        elif not writable and source != record.rank:
            size_bytes = -status.READ_ONLY
        call = Broadcast(buf.ctypes.data, size_bytes, dtype, source)
        if not is_local or load_acquire(record.guard) != IDLE or size_bytes < 0 or source != 0:
            enter(record, call)

    return broadcast
