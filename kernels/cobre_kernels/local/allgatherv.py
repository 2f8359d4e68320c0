"""Allgatherv of one rank: an identity copy into its block."""

from cobre_kernels.arguments import check_allgatherv
from cobre_kernels.atomics import copy_bytes, peek
from cobre_kernels.guard import usability
from cobre_kernels.kernel import address_of, kernel
from cobre_kernels.status import OK


@kernel(arguments=10)
def allgatherv_kernel(
    state,
    send,
    send_count,
    recv,
    recv_count,
    itemsize,
    dtype,
    counts,
    displs,
    counts_len,
    displs_len,
):
    """Copy ``send`` to its block of ``recv``."""
    state = address_of(state)
    outcome = usability(state)
    if outcome == OK:
        outcome = check_allgatherv(
            state,
            send,
            send_count,
            recv,
            recv_count,
            itemsize,
            counts,
            displs,
            counts_len,
            displs_len,
        )
    if outcome == OK:
        block = recv + peek(displs) * itemsize
        if block != send:
            copy_bytes(block, send, send_count * itemsize)
    return outcome
