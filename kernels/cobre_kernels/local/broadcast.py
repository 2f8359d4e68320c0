"""Broadcast of one rank: the buffer already holds the root's bytes."""

from cobre_kernels.arguments import check_broadcast
from cobre_kernels.guard import usability
from cobre_kernels.kernel import address_of, kernel
from cobre_kernels.status import OK


@kernel(arguments=4)
def broadcast_kernel(state, buffer, size_bytes, dtype, root):
    """Check the root and return."""
    state = address_of(state)
    outcome = usability(state)
    return outcome if outcome != OK else check_broadcast(state, root)
