"""``allgatherv`` in ``@njit`` code."""

from __future__ import annotations

from cobre_kernels.collective import status
from cobre_kernels.collective.calls import ALLGATHERV, Allgatherv
from cobre_kernels.machine.compiling.numba_internals import as_dtype
from cobre_kernels.machine.kernel import run

from cobre_comm.arguments.slow_path import dtype_word
from cobre_comm.jit.arguments import blocks_problem, contiguity, refusal, table
from cobre_comm.jit.attributes import collective_method
from cobre_comm.jit.fields import checking, keep, record_of

check = checking(ALLGATHERV)


@collective_method("allgatherv")
def _allgatherv(comm, send, recv, counts, displs):
    problem = blocks_problem("allgatherv", (send, recv, counts, displs))
    if problem is not None:
        refuse = refusal(ALLGATHERV, problem)
        return lambda comm, send, recv, counts, displs: refuse(comm)
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
        outcome = run(record.collectives[ALLGATHERV].entry, record, call)
        keep(lengths)
        keep(displacements)
        check(record, call, outcome)

    return allgatherv
