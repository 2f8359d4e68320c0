"""How a step fails: by what control links have told, by a link that ends, by the timeout."""

from cobre_kernels.collective.comm import ARRIVED, LATE
from cobre_kernels.collective.status import DISAGREE, LOST_PEER, OK, TIMED_OUT
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp.links import FAILURE_BYTES, MEMBER, NOBODY, is_coordinator
from cobre_kernels.tcp.progress.control import await_control, query_liveness
from cobre_kernels.tcp.protocol import ANSWER_NS, EXPLANATION_MS, QUERY_NS, REPORT_NS


@routine
def failure_of_step(comm):
    """Return OK, or how this step has failed according to what is known of the others."""
    if _adopt_report(comm):
        return comm.links.reported_status
    lost = False
    for rank in range(comm.size):
        peer = comm.links.peers[rank]
        reason = peer.condition
        if reason != MEMBER and peer.completed >= comm.generation:
            reason = ARRIVED  # row "goodbye": its part of this step is done
        lost = lost or reason != ARRIVED
        comm.failures[rank].reason = reason
    return LOST_PEER if lost else OK


@routine
def _adopt_report(comm):
    """Make the failure report of this step, or of one before, this rank's own: row "report"."""
    links, status = comm.links, comm.links.reported_status
    is_known = status in (DISAGREE, TIMED_OUT, LOST_PEER)
    if not is_known or links.reported_step > comm.generation:
        return False
    move(comm.failures[0].address, links.reported[0].address, comm.size * FAILURE_BYTES)
    comm.waited_ns = comm.timeout_ns  # as if this rank had waited itself
    return True


@routine
def failure_of_link(comm, rank, reason):
    """Return how the step failed when a data link was lost: rows "garbled" and "data link ends".

    The control link tells more: whether the rank has left, has failed, or how all of them did.
    """
    await_control(comm, rank, EXPLANATION_MS)
    outcome = failure_of_step(comm)
    if outcome == OK:
        peer = comm.links.peers[rank]
        peer.condition = reason
        peer.completed = 0
        outcome = failure_of_step(comm)
    return outcome


@routine
def failure_by_timeout(comm, now):
    """Query the others, and later name the late ones: rows "silence" to "no report".

    Return OK while answers may still come. Before the ranks have agreed, no rank can have
    completed the step: a silent rank is late. On the ring a silent rank may have completed it.
    There only awaited ranks are late, unless no other rank reports which one it is.
    """
    links = comm.links
    if links.overdue_since == 0:
        links.overdue_since = now
        query_liveness(comm, now)
    overdue_ns = now - links.overdue_since
    if overdue_ns < ANSWER_NS:
        return OK
    have_agreed = links.awaited_in != NOBODY or links.awaited_out != NOBODY
    late = False
    for rank in range(comm.size):
        is_awaited = _is_awaited(comm, rank)
        is_late = _is_silent(comm, rank)
        if have_agreed or is_coordinator(comm):
            is_late = is_late and is_awaited
        is_late = is_late or (overdue_ns >= REPORT_NS and is_awaited)
        late = late or is_late
        comm.failures[rank].reason = LATE if is_late else ARRIVED
    return TIMED_OUT if late else OK


@routine
def _is_awaited(comm, rank):
    """Tell whether this rank itself waits for that one, on the ring or on the star."""
    if rank == comm.links.awaited_in or rank == comm.links.awaited_out:
        return True
    peer = comm.links.peers[rank]
    return peer.filled < peer.wanted or peer.header_left + peer.payload_left > 0


@routine
def first_awaited(comm):
    """Return the first rank that this one waits for, or NOBODY."""
    for rank in range(comm.size):
        if _is_awaited(comm, rank):
            return rank
    return NOBODY


@routine
def _is_silent(comm, rank):
    """Tell whether a rank has not told, since about the timeout, that it waits too."""
    return (
        rank != comm.rank and comm.links.peers[rank].heard_ns < comm.links.overdue_since - QUERY_NS
    )
