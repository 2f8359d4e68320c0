"""Control messages between leaders, and what a leader notes when one arrives.

========  ===============  =================  ====================================================
message   number           words              tells
========  ===============  =================  ====================================================
QUERY     0                none               liveness query: asks whether the receiver waits for
                                              leaders too
ANSWER    0                none               liveness answer: the sender waits. A leader reads no
                                              query while it computes, or waits for its own node
RAISED    a rank           RAISED_WORDS       by which exception that rank has ended: its type, and
                                              the first line of its text
REPORT    verbs completed  one for each rank  failure report: why ranks take no further part
GOODBYE   verbs completed  none               its sender closes
========  ===============  =================  ====================================================

A rank sends REPORT or GOODBYE once. A leader also reports losses that it has adopted from the
report of another leader. If it did not, other leaders could see this leader end before they read
the first report, and would think that this leader is the lost rank. After a disagreement a leader
says goodbye at once, because its program may end while other leaders still learn of the
disagreement.

A transport carries messages (``verbs.py``). It calls :func:`take_in` for each message that arrives,
and :func:`note_end` if a link has ended.
"""

from typing import NamedTuple

from cobre_kernels.collective.calls import BodyStatus
from cobre_kernels.collective.comm import COMM, DIED, GAVE_UP, LATE, LEFT, PRESENT
from cobre_kernels.collective.seeing.journal import (
    NOBODY,
    RAISED_ROWS,
    RAISED_WORDS,
    note_raised,
    take_raised,
)
from cobre_kernels.collective.status import OK
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import peek, poke
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.kernel import kernel, run
from cobre_kernels.machine.record import WORD_BYTES
from cobre_kernels.nodes.records import leader_of

KINDS = QUERY, ANSWER, RAISED, REPORT, GOODBYE = range(5)
EVERYBODY = -1  # stands for all nodes, in place of one
CLOSED_HERE = -1  # in place of a condition: this process has closed its own end of the link


class Message(NamedTuple):
    """A control message to the leader of one node, or to all other leaders that still take part."""

    node: int
    kind: int
    number: int
    words: int
    count: int


@routine
def words_of(comm, kind):
    """Return how many words a message of this kind has behind its number."""
    if kind == REPORT:
        return comm.size
    return RAISED_WORDS if kind == RAISED else 0


@routine
def send(comm, node, kind, number, words):
    """Send a control message; its words lie at the address ``words``."""
    run(comm.nodes.post, comm, Message(node, kind, number, words, words_of(comm, kind)))


@routine
def gets(comm, call, node):
    """Tell whether a message goes to that node.

    A leader that has ended gets no message: it needs none, and MPICH over UCX crashes when a
    message goes to a process that has ended.
    """
    reason = comm.failures[leader_of(comm.nodes, node)].reason
    is_meant = call.node == node or (call.node == EVERYBODY and node != comm.nodes.own_node)
    return is_meant and reason != DIED and reason != LEFT


@kernel(COMM, BodyStatus)
def report_kernel(comm, call):
    """Send the failure report: for each rank, why it takes no further part, by the records."""
    for rank in range(comm.size):
        poke(comm.nodes.report_words + WORD_BYTES * rank, comm.failures[rank].reason)
    _send_last(comm, REPORT)
    return OK


@kernel(COMM)
def goodbye_kernel(comm):
    """Say goodbye, as a leader that closes."""
    say_goodbye(comm)
    return OK


@routine
def say_goodbye(comm):
    """Tell the other leaders that this leader takes no further part."""
    _send_last(comm, GOODBYE)


@routine
def _send_last(comm, kind):
    """Tell by which exceptions ranks have ended; then, but only once, send the last message."""
    nodes = comm.nodes
    for row in range(nodes.raised_told, RAISED_ROWS):
        rank = take_raised(comm.journal, row, nodes.raised_words)
        if rank != NOBODY:
            send(comm, EVERYBODY, RAISED, rank, nodes.raised_words)
            nodes.raised_told = row + 1
    if nodes.has_told == 0:
        nodes.has_told = 1
        send(comm, EVERYBODY, kind, nodes.completed, nodes.report_words)


@routine
def take_in(comm, sender, kind, number, words):
    """Note a control message that has arrived from a rank."""
    nodes = comm.nodes
    node = nodes.node_of[sender]
    leader = nodes.leaders[node]
    if kind == RAISED:
        note_raised(comm.journal, number, words)
    elif kind in (QUERY, ANSWER):
        leader.heard_ns = libc.monotonic_ns()
        if kind == QUERY:
            send(comm, node, ANSWER, 0, 0)
    elif kind == GOODBYE:
        _note_loss(nodes, leader, LEFT, number)
    else:
        _note_loss(nodes, leader, GAVE_UP, number)
        _take_report(comm, sender, number, words)


@routine
def _note_loss(nodes, leader, condition, completed):
    leader.condition = condition
    leader.completed = completed
    nodes.losses += 1


@routine
def _take_report(comm, sender, completed, words):
    """Keep the reasons in a report, unless an earlier report names ``sender`` as missing."""
    nodes = comm.nodes
    if nodes.reports > 0 and nodes.reasons[sender] != PRESENT:
        return
    if nodes.reports == 0 or completed < nodes.reported:
        nodes.reported = completed
        nodes.reporter = sender
    nodes.reports += 1
    for rank in range(comm.size):
        reason = peek(words + WORD_BYTES * rank)
        is_more = reason != LATE or nodes.reasons[rank] == PRESENT
        if reason != PRESENT and is_more:
            nodes.reasons[rank] = reason


@routine
def note_end(comm, node, reason):
    """Note a leader as lost because its link has ended, unless it has already told a reason."""
    leader = comm.nodes.leaders[node]
    if leader.condition == PRESENT:
        _note_loss(comm.nodes, leader, reason, 0)


@routine
def lose(comm, node, reason):
    """Note a leader as lost because its due frame does not come, even if it has told a reason."""
    _note_loss(comm.nodes, comm.nodes.leaders[node], reason, 0)
