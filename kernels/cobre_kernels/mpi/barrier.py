"""Barrier: one round without data. Also every agreement without data, and the fence."""

from cobre_kernels.collective.calls import FENCE, Barrier
from cobre_kernels.collective.comm import COMM, GAVE_UP
from cobre_kernels.collective.status import DISAGREE, OK
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi.messages import report_failure
from cobre_kernels.mpi.round import enter_round, fail_on_node, hand_out, meet_node
from cobre_kernels.shm.step import record_calls


@kernel(COMM, Barrier)
def barrier_body(comm, call):
    """Go through one round; a fence is for the ranks of one node, which share the region."""
    if call.signature & 0xFF == FENCE:
        return _fence(comm)
    return hand_out(comm, enter_round(comm, False))


@routine
def _fence(comm):
    outcome = meet_node(comm)
    if outcome == DISAGREE:
        _record_node(comm)
        report_failure(comm, GAVE_UP)
    elif outcome != OK:
        fail_on_node(comm, outcome)
    return outcome


@routine
def _record_node(comm):
    """Keep what the ranks of this node called; of the others, which take no part, nothing."""
    mpi, node = comm.mpi, comm.mpi.node
    record_calls(node)
    for rank in range(comm.size):
        comm.failures[rank].signature = 0
    first = mpi.node_starts[mpi.own_node]
    for index in range(node.size):
        called, failure = node.failures[index], comm.failures[mpi.node_order[first + index]]
        failure.signature = called.signature
        failure.length = called.length
        failure.detail = called.detail
