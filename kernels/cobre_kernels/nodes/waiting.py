"""How a leader waits in a verb, on every transport: what ends its wait, and which ranks it names.

``collective/waiting/patience.py`` has the policy, ``protocol.py`` the events that may end a wait in
each state, ``messages.py`` the messages of leaders during a wait.

When the timeout is over, a leader queries the other leaders. If one that this leader waits for does
not answer, that leader is late. If all of these leaders answer, they wait for leaders too, and the
late rank is behind another leader, such as one that is nearer to the late rank on the ring. A
leader that waits for the late rank itself names that rank in a report. So this leader waits a
little longer for that report.

Where leaders pass on the headers of others (``tcp/hops.py``), this leader also waits for leaders
that are BEHIND another leader. If a leader that is BEHIND is silent, that leader is late too. Such
a leader may have completed the verb, and now compute for longer than the timeout. In this case
another leader, which passes nothing on, is silent as well.
"""

from cobre_kernels.collective.comm import COMM, GAVE_UP, LATE, LEADERS, PRESENT, UNREACHABLE
from cobre_kernels.collective.status import (
    INTERRUPTED,
    IS_FORKED,
    LOST_PEER,
    MPI_FAILED,
    OK,
    TIMED_OUT,
)
from cobre_kernels.collective.waiting.patience import (
    Look,
    begin_anew,
    begin_wait,
    end_wait,
    mark_nobody,
    waited_ns,
    write_late_line,
)
from cobre_kernels.collective.waiting.pulse import beat
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.kernel import kernel, run_alone
from cobre_kernels.nodes.failing import adopt_report, clear_failures
from cobre_kernels.nodes.messages import CLOSED_HERE, EVERYBODY, QUERY, send
from cobre_kernels.nodes.protocol import (
    FAILURE,
    FRESH_LOSS,
    MOVING,
    NO_REPORT,
    OVERDUE,
    SIGNAL,
    SILENCE,
    allows,
    happen,
)
from cobre_kernels.nodes.records import AWAITED, leader_of, ranks_of

ANSWER_NS = 500_000_000  # how long a leader waits for answers to a liveness query
REPORT_NS = 2_000_000_000  # how long it waits for the report of a leader nearer to the late rank


@routine
def begin_verb(comm):
    """Begin a verb; return OK, or how it has failed because a leader is lost already."""
    nodes = comm.nodes
    nodes.begun += 1
    begin_wait(comm, LEADERS)
    comm.wait.must_stay = not allows(comm, SIGNAL)
    return failure_of_verb(comm)


@routine
def note_progress(comm):
    """Begin the wait anew, because bytes have moved; for a transport that sees bytes move."""
    beat(comm)
    end_wait(comm, OK)
    begin_anew(comm)


@routine
def end_verb(comm, outcome):
    """End a verb, and note how it has ended; return its outcome."""
    nodes = comm.nodes
    end_wait(comm, outcome)
    if outcome == OK:
        nodes.completed = nodes.begun
    elif outcome in (INTERRUPTED, IS_FORKED):
        happen(comm, SIGNAL)
    elif outcome == MPI_FAILED:
        happen(comm, FAILURE)
    return outcome


@routine
def failure_of_verb(comm):
    """Return how the verb under way has failed, by the known losses and reports, or OK."""
    nodes = comm.nodes
    if nodes.losses == 0 or not allows(comm, FRESH_LOSS):
        return OK
    if nodes.reports > 0 and nodes.reported < nodes.begun:
        happen(comm, FRESH_LOSS)
        return adopt_report(comm)
    return _name_lost_leaders(comm)


@routine
def _name_lost_leaders(comm):
    """Name the lost leaders that have not completed this verb; return LOST_PEER, or OK if none."""
    nodes = comm.nodes
    clear_failures(comm)
    outcome = OK
    for node in range(nodes.nodes):
        leader = nodes.leaders[node]
        if leader.condition == PRESENT or leader.completed >= nodes.begun:
            continue
        if leader.condition == CLOSED_HERE:  # not the fault of the other leader
            comm.failures[comm.rank].reason = GAVE_UP
        else:
            comm.failures[leader_of(nodes, node)].reason = leader.condition
        outcome = LOST_PEER
    if outcome != OK:
        happen(comm, FRESH_LOSS)
    return outcome


@kernel(COMM, Look)
def look_around_kernel(comm, call):
    """Read the messages that have arrived; find out which ranks are lost, or late."""
    run_alone(comm.nodes.read, comm)
    outcome = failure_of_verb(comm)
    if outcome != OK:
        return outcome
    if call.is_line_due != 0 and comm.wait.queried_ns == 0:
        _tell_of_late(comm)
    if call.is_overdue != 0 and happen(comm, OVERDUE):
        return _failure_by_timeout(comm)
    return OK


@routine
def _is_silent(comm, node, queried_ns):
    """Tell whether this leader waits for a node's leader that has not answered its query."""
    leader = comm.nodes.leaders[node]
    return leader.is_awaited != 0 and leader.heard_ns < queried_ns


@routine
def _query_leaders(comm):
    """Send every other leader a liveness query; return the time of the query."""
    send(comm, EVERYBODY, QUERY, 0, 0)
    return comm.wait.clock_ns


@routine
def _tell_of_late(comm):
    """Query the other leaders; after the time for answers, make a line name the silent leaders."""
    nodes, wait = comm.nodes, comm.wait
    if wait.asked_ns == 0:
        wait.asked_ns = _query_leaders(comm)
    elif wait.clock_ns - wait.asked_ns >= ANSWER_NS:
        silent = 0
        mark_nobody(comm)
        for node in range(nodes.nodes):
            if _is_silent(comm, node, wait.asked_ns):
                _mark_node(comm, node)
                silent += 1
        if silent > 0:  # otherwise the network is slow, or other leaders report the late rank
            write_late_line(comm)
        wait.asked_ns = 0
        wait.lines += 1


@routine
def _mark_node(comm, node):
    """Mark in ``comm.late`` how long this leader has waited for the leader of a node.

    A leader that waits for a rank of its own node neither moves bytes nor answers. So the late rank
    may be any rank of that node. If that node has several ranks, the number is below 0.
    """
    shown_ns = waited_ns(comm)
    is_alone = ranks_of(comm.nodes, node) == 1
    comm.late[leader_of(comm.nodes, node)] = shown_ns if is_alone else -shown_ns


@routine
def _failure_by_timeout(comm):
    """Query the other leaders, later name late ones; return OK while answers may still arrive."""
    nodes, wait = comm.nodes, comm.wait
    if wait.queried_ns == 0:
        wait.queried_ns = _query_leaders(comm)
    overdue_ns = wait.clock_ns - wait.queried_ns
    if overdue_ns < ANSWER_NS:
        return OK
    clear_failures(comm)
    outcome = OK
    for node in range(nodes.nodes):
        if _is_silent(comm, node, wait.queried_ns):
            comm.failures[leader_of(nodes, node)].reason = LATE
            outcome = TIMED_OUT
    if outcome != OK:
        happen(comm, SILENCE)
    elif overdue_ns >= REPORT_NS:
        outcome = _failure_without_report(comm)
    return outcome


@routine
def _failure_without_report(comm):
    """End the wait, because all leaders have answered the query, but no report has arrived.

    If bytes may move unseen, the wait begins anew instead. Otherwise the ranks of the awaited nodes
    are named, because they cannot be reached.
    """
    nodes, wait = comm.nodes, comm.wait
    if nodes.sees_bytes == 0 and nodes.state == MOVING:
        wait.queried_ns = 0
        wait.began_ns = wait.clock_ns
        return OK
    for rank in range(comm.size):
        if nodes.leaders[nodes.node_of[rank]].is_awaited == AWAITED:
            comm.failures[rank].reason = UNREACHABLE
    happen(comm, NO_REPORT)
    return LOST_PEER
