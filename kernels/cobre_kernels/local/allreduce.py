"""Allreduce of one rank: an identity copy."""

from cobre_kernels.arguments import check_allreduce
from cobre_kernels.atomics import copy_bytes
from cobre_kernels.guard import usability
from cobre_kernels.kernel import address_of, kernel
from cobre_kernels.status import OK


@kernel(arguments=7)
def allreduce_kernel(state, send, send_count, recv, recv_count, itemsize, dtype, op):
    """Copy ``send`` to ``recv``."""
    outcome = usability(address_of(state))
    if outcome == OK:
        outcome = check_allreduce(send, send_count, recv, recv_count, itemsize, dtype, op)
    if outcome == OK and send != recv:
        copy_bytes(recv, send, send_count * itemsize)
    return outcome
