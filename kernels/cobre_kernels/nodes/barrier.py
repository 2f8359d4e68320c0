"""Barrier: one round without data, like every agreement without data; a fence is a step."""

from cobre_kernels.collective.calls import FENCE, Barrier
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.nodes.failing import fail_on_node
from cobre_kernels.nodes.round import agree, meet_node


@kernel(COMM, Barrier)
def barrier_body(comm, call):
    """Go through one round; a fence is a step of one node, because its ranks share the region."""
    if call.signature & 0xFF != FENCE:
        return agree(comm)
    outcome = meet_node(comm)
    if outcome != OK:
        fail_on_node(comm, outcome)
    return outcome
