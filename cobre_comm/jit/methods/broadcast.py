"""``broadcast`` in ``@njit`` code."""

from __future__ import annotations

from cobre_kernels.collective import status
from cobre_kernels.collective.calls import BROADCAST, Broadcast
from cobre_kernels.collective.comm import IDLE
from cobre_kernels.machine.atomics import load_acquire
from cobre_kernels.machine.kernel import run
from cobre_kernels.machine.numba_internals import as_dtype

from cobre_comm.arguments.slow_path import dtype_word
from cobre_comm.failure import Failure
from cobre_comm.jit.arguments import (
    array_problem,
    contiguity,
    integer_problem,
    integer_reader,
    refused,
)
from cobre_comm.jit.attributes import collective_method
from cobre_comm.jit.fields import explain, in_frame, record_of


@collective_method("broadcast")
def _broadcast(comm, buf, root=0):
    problem = array_problem("broadcast", "buf", buf, writable=False)
    problem = problem or integer_problem("broadcast", "root", root)
    if problem is not None:
        sentence, word, error = problem

        def refuse(comm, buf, root=0):
            refused(record_of(comm), BROADCAST, status.REFUSED)
            raise error(sentence, word)

        return refuse
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
        outcome = status.OK
        if not is_local or load_acquire(record.guard) != IDLE or size_bytes < 0 or source != 0:
            outcome = run(record.collectives[BROADCAST].entry, record, call)
        if outcome != status.OK:
            explain(record, BROADCAST, outcome, in_frame(call))
            raise Failure

    return broadcast
