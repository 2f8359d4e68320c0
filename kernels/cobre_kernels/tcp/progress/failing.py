"""How a step fails: by what control links have told, by a link that ends, by the timeout."""

from cobre_kernels.collective.comm import GAVE_UP, LATE, PRESENT
from cobre_kernels.collective.status import LOST_PEER, OK, TIMED_OUT
from cobre_kernels.collective.waiting.patience import end_wait
from cobre_kernels.machine.routine import routine
from cobre_kernels.nodes.failing import adopt_reasons
from cobre_kernels.nodes.records import leader_of, mark_node
from cobre_kernels.tcp.links import CLOSED_HERE, MEMBER, NOBODY
from cobre_kernels.tcp.progress.control import await_control, query_liveness
from cobre_kernels.tcp.protocol import ANSWER_NS, EXPLANATION_MS, QUERY_NS, REPORT_NS


@routine
def failure_of_step(comm):
    """Return OK, or how this step has failed according to what is known of the others."""
    links = comm.links
    if links.has_report != 0 and links.reported_step <= comm.generation:
        return _adopt_report(comm)
    _clear(comm)
    lost = False
    for node in range(comm.nodes.nodes):
        peer = links.peers[node]
        has_done_its_part = peer.completed >= comm.generation  # row "goodbye"
        if peer.condition == CLOSED_HERE:  # no fault of the other leader
            comm.failures[comm.rank].reason = GAVE_UP
            lost = True
        elif peer.condition != MEMBER and not has_done_its_part:
            comm.failures[leader_of(comm.nodes, node)].reason = peer.condition
            lost = True
    return LOST_PEER if lost else OK


@routine
def _clear(comm):
    for rank in range(comm.size):
        comm.failures[rank].reason = PRESENT


@routine
def _adopt_report(comm):
    """Make the failure report of this step, or of one before, this leader's own: row "report"."""
    comm.waited_ns = comm.timeout_ns  # as if this rank had waited itself
    return adopt_reasons(comm, comm.links.reported, comm.links.reporter, True)


@routine
def failure_of_link(comm, node, reason):
    """Return how the step failed when a data link was lost: rows "garbled" and "data link ends".

    The control link tells more: whether the leader has left, or how a step has failed.
    """
    await_control(comm, node, EXPLANATION_MS)
    outcome = failure_of_step(comm)
    if outcome == OK:
        peer = comm.links.peers[node]
        peer.condition = reason
        peer.completed = 0
        outcome = failure_of_step(comm)
    end_wait(comm, outcome)
    return outcome


@routine
def failure_by_timeout(comm):
    """Query the others, and later name the late ones: rows "silence" to "no report".

    Return OK while answers may still come. Leaders that are not awaited may have completed the
    step, so their silence tells nothing.
    """
    wait = comm.wait
    if wait.queried_ns == 0:
        wait.queried_ns = wait.clock_ns
        query_liveness(comm, wait.clock_ns)
    overdue_ns = wait.clock_ns - wait.queried_ns
    if overdue_ns < ANSWER_NS:
        return OK
    _clear(comm)
    late = False
    for node in range(comm.nodes.nodes):
        if _is_awaited(comm, node) and (overdue_ns >= REPORT_NS or _is_silent(comm, node)):
            comm.failures[leader_of(comm.nodes, node)].reason = LATE
            late = True
    return TIMED_OUT if late else OK


@routine
def _is_awaited(comm, node):
    """Tell whether this leader itself waits for that one."""
    if node == comm.links.awaited_in or node == comm.links.awaited_out:
        return True
    peer = comm.links.peers[node]
    return peer.filled < peer.wanted or peer.header_left + peer.payload_left > 0


@routine
def first_awaited(comm):
    """Return the first leader that this one waits for, or NOBODY."""
    first = NOBODY
    for node in range(comm.nodes.nodes - 1, -1, -1):
        if _is_awaited(comm, node):
            first = leader_of(comm.nodes, node)
    return first


@routine
def mark_late(comm):
    """Mark the leaders that this one waits for, so that a line tells of them."""
    for node in range(comm.nodes.nodes):
        mark_node(comm, node, _is_awaited(comm, node))


@routine
def _is_silent(comm, node):
    """Tell whether a leader has not told, since about the timeout, that it waits too."""
    return comm.links.peers[node].heard_ns < comm.wait.queried_ns - QUERY_NS
