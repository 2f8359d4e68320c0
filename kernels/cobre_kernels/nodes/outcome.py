"""The end of a round: every rank of a node gets its leader's outcome."""

from cobre_kernels.collective.calls import STOP, BodyStatus
from cobre_kernels.collective.comm import COMM, LATE
from cobre_kernels.collective.status import (
    DISAGREE,
    INTERRUPTED,
    IS_FORKED,
    LOST_PEER,
    OK,
    TIMED_OUT,
)
from cobre_kernels.machine.atomics import (
    load_acquire,
    load_relaxed,
    store_relaxed,
    store_release,
)
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel, run
from cobre_kernels.nodes.arrival import show_last, take_last
from cobre_kernels.nodes.failing import (
    FAILURE_BYTES,
    fail_on_node,
    miss,
    report_failure,
    take_failures,
)
from cobre_kernels.nodes.protocol import OUTCOME, happen
from cobre_kernels.nodes.records import has_lane, leads, own_staging, speaks_for_node
from cobre_kernels.shm.step import NodeStep

PULSE_NS = 500_000_000  # how long a leader's pulse may pause while it learns how another ended


@kernel(COMM, BodyStatus)
def hand_out_kernel(comm, call):
    """Give the ranks of this node the outcome of their leader, by a step of shared memory."""
    nodes = comm.nodes
    if not happen(comm, OUTCOME):
        return call.status
    if leads(comm) and call.status not in (OK, DISAGREE):
        report_failure(comm, call.status)  # always: other leaders may be PREPARED, without a limit
    if call.status in (INTERRUPTED, IS_FORKED):
        return call.status  # only this rank gets it; the other ranks notice that this rank is lost
    if leads(comm):
        _show_outcome(comm, call.status)
    grace_ns = 0 if speaks_for_node(comm) else PULSE_NS
    mark = comm.signature & STOP  # other leaders may have brought it to this leader in this round
    step = run(nodes.step_kernel, comm, NodeStep(mark, 0, 0, grace_ns))
    # If the leader gave up in this step, its outcome says which ranks were missing. If the leader
    # was interrupted, it has stored no outcome.
    has_given_up = step == LOST_PEER and load_acquire(nodes.of_lane[0].staging.status) != OK
    if not (step == OK or (has_given_up and not speaks_for_node(comm))):
        fail_on_node(comm, step)
        if step == TIMED_OUT and speaks_for_node(comm) and call.status == OK:  # a follower is late
            _show_outcome(comm, step)
        return step
    if speaks_for_node(comm) and nodes.lanes_now == 1:
        return call.status
    outcome = _take_outcome(comm)
    if outcome not in (OK, DISAGREE) and has_lane(comm):
        report_failure(comm, outcome)  # the leaders of this rank's lane may not know it yet
    return outcome


@routine
def _show_outcome(comm, status):
    """Write the outcome for the ranks of this node, which read it after the next step."""
    staging = own_staging(comm.nodes)
    show_last(comm)
    store_relaxed(staging.is_whole, comm.nodes.is_whole)
    if status != OK:
        for rank in range(comm.size):
            staged = staging.failures[comm.nodes.node_index[rank]].address
            move(staged, comm.failures[rank].address, FAILURE_BYTES)
    store_relaxed(staging.mpi_error, comm.mpi_error)
    store_relaxed(staging.waited_ns, comm.waited_ns)
    # Release: pairs with the load in _take_outcome by a rank that its leader has found late.
    store_release(staging.status, status)


@routine
def _take_outcome(comm):
    """Return the outcome; if the leader calls this rank late, name the leader instead."""
    nodes, lane = comm.nodes, _deciding_lane(comm)
    staging = nodes.of_lane[lane].staging
    status = load_acquire(staging.status)
    take_last(comm)
    nodes.is_whole = load_relaxed(staging.is_whole)
    if status != OK:
        take_failures(comm, staging.failures[0].address)
        comm.mpi_error = load_relaxed(staging.mpi_error)
        comm.waited_ns = load_relaxed(staging.waited_ns)
    if status == TIMED_OUT and comm.failures[comm.rank].reason == LATE:
        return miss(comm, nodes.node_order[nodes.node_starts[nodes.own_node] + lane])
    return status


@routine
def _deciding_lane(comm):
    """Return the lane with the outcome that is the outcome of the round.

    If several lanes have failed, a lane with DISAGREE decides. After a disagreement a rank may end
    before other lanes learn of the disagreement. These lanes then fail because the rank is lost.
    """
    deciding = 0
    for lane in range(comm.nodes.lanes_now - 1, -1, -1):
        status = load_acquire(comm.nodes.of_lane[lane].staging.status)
        if status == DISAGREE:
            return lane
        if status != OK:
            deciding = lane
    return deciding
