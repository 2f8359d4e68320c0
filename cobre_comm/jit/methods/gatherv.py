"""``gatherv`` in ``@njit`` code, where only the root needs ``recv`` and the tables."""

from __future__ import annotations

from cobre_kernels.collective import status
from cobre_kernels.collective.calls import GATHERV, Gatherv
from cobre_kernels.machine.compiling.numba_internals import as_dtype
from cobre_kernels.machine.kernel import run

from cobre_comm.arguments.slow_path import dtype_word
from cobre_comm.jit.arguments import (
    array_problem,
    blocks_problem,
    contiguity,
    integer_problem,
    integer_reader,
    refusal,
    table,
)
from cobre_comm.jit.attributes import collective_method
from cobre_comm.jit.fields import checking, entering, keep, record_of

enter, check = entering(GATHERV), checking(GATHERV)


@collective_method("gatherv")
def _gatherv(comm, send, recv, counts, displs, root=0):
    problem = array_problem("gatherv", "send", send, writable=False)
    problem = problem or integer_problem("gatherv", "root", root)
    if problem is not None:
        refuse = refusal(GATHERV, problem)
        return lambda comm, send, recv, counts, displs, root=0: refuse(comm)
    problem = blocks_problem("gatherv", (send, recv, counts, displs))
    if problem is not None:
        return _as_sender(send, root, problem)
    return _as_any_rank(send, recv, (counts, displs), root)


def _as_sender(send, root, problem):
    """Return the implementation for wrong ``recv`` or tables, which only the root refuses."""
    refuse = refusal(GATHERV, problem)
    is_contiguous, to_int = contiguity(send), integer_reader(root)
    numpy_dtype = as_dtype(send.dtype)
    dtype, itemsize = dtype_word(numpy_dtype), numpy_dtype.itemsize

    def gatherv(comm, send, recv, counts, displs, root=0):
        record, target = record_of(comm), to_int(root)
        if target == record.rank:
            refuse(comm)
        send_count = send.size if is_contiguous(send) else -status.NOT_CONTIGUOUS
        call = Gatherv(send.ctypes.data, send_count, 0, 0, itemsize, dtype, 0, 0, 0, 0, target)
        enter(record, call)

    return gatherv


def _as_any_rank(send, recv, tables, root):
    """Return the implementation for usable arguments, on the root and on other ranks."""
    as_counts, as_displs = table(tables[0]), table(tables[1])
    send_contiguous, recv_contiguous = contiguity(send), contiguity(recv)
    numpy_dtype, to_int = as_dtype(send.dtype), integer_reader(root)
    dtype, itemsize = dtype_word(numpy_dtype), numpy_dtype.itemsize

    def gatherv(comm, send, recv, counts, displs, root=0):
        record, target, send_count = record_of(comm), to_int(root), send.size
        is_root = target == record.rank
        if not send_contiguous(send) or (is_root and not recv_contiguous(recv)):
            send_count = -status.NOT_CONTIGUOUS
        lengths, counts_fit = as_counts(counts)
        displacements, displs_fit = as_displs(displs)
        counts_len = lengths.size if counts_fit and displs_fit else -status.UNFIT
        call = Gatherv(
            send.ctypes.data, send_count, recv.ctypes.data, recv.size, itemsize, dtype,
            lengths.ctypes.data, displacements.ctypes.data, counts_len, displacements.size, target,
        )  # fmt: skip
        outcome = run(record.collectives[GATHERV].entry, record, call)
        keep(lengths)
        keep(displacements)
        check(record, call, outcome)

    return gatherv
