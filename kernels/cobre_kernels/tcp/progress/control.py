"""Control messages over sockets; ``nodes/messages.py`` has their meanings.

The control link between two leaders carries nothing else. Its messages are small and rare.
"""

from cobre_kernels.collective.comm import COMM, DIED, GARBLED, PRESENT, UNREACHABLE
from cobre_kernels.collective.status import OK
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import peek, poke, swap_bytes
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.record import WORD_BYTES
from cobre_kernels.nodes.messages import (
    CLOSED_HERE,
    GOODBYE,
    RAISED,
    Message,
    gets,
    lose,
    note_end,
    take_in,
    words_of,
)
from cobre_kernels.nodes.records import AWAITED, BEHIND, leader_of
from cobre_kernels.nodes.waiting import failure_of_verb
from cobre_kernels.tcp.frame import (
    CONTROL_BYTES,
    CONTROL_OFFSET,
    control_first,
    control_kind,
    is_control,
)
from cobre_kernels.tcp.links import NO_LINK
from cobre_kernels.tcp.progress.sockets import NS_PER_MS, becomes_ready, receive_all, send_all

EXPLANATION_MS = 200  # the time for a control message that explains why a data link has ended
SEND_PATIENCE_MS = 100  # the time for a control message that does not fit the socket's buffer
REST_PATIENCE_MS = 1000  # the time for the words of a message that has begun to arrive


@kernel(COMM, Message)
def post_kernel(comm, call):
    """Send a message on all control links that still exist."""
    links, message = comm.links, comm.links.message_out
    words_bytes = WORD_BYTES * call.count
    message.first = control_first(call.kind, words_bytes)
    message.number = swap_bytes(call.number)
    for index in range(call.count):
        at = WORD_BYTES * index
        poke(links.words_out + at, swap_bytes(peek(call.words + at)))
    for node in range(comm.nodes.nodes):
        fd = links.peers[node].control_fd
        if fd != NO_LINK and gets(comm, call, node):
            begin, count = message.address + CONTROL_OFFSET, CONTROL_BYTES + words_bytes
            send_all(comm, fd, begin, count, SEND_PATIENCE_MS)
    return OK


@kernel(COMM)
def read_kernel(comm):
    """Read every control link, check every process, and note which leaders are awaited."""
    comm.links.swept = comm.nodes.begun
    for node in range(comm.nodes.nodes):
        comm.nodes.leaders[node].is_awaited = _how_awaited(comm, node)
        read_control(comm, node)
        if _has_ended(comm, comm.links.peers[node]):
            take_end_of_process(comm, node)
    return OK


@routine
def _has_ended(comm, peer):
    """Tell whether the process of a leader has ended while its control link has not."""
    is_watched = peer.control_fd != NO_LINK and peer.process_fd != NO_LINK
    return is_watched and becomes_ready(comm, peer.process_fd, libc.POLLIN, 0)


@routine
def take_end_of_process(comm, node):
    """Read the last messages of a process that has ended, then give up its control link."""
    await_control(comm, node, EXPLANATION_MS)
    end_control(comm, node, DIED)


@routine
def is_awaited(comm, node):
    """Tell whether this leader still waits for the leader of a node, in the verb under way."""
    if node == comm.links.awaited_in or node == comm.links.awaited_out:
        return True
    peer = comm.links.peers[node]
    return peer.filled < peer.wanted or peer.header_left + peer.payload_left > 0


@routine
def _how_awaited(comm, node):
    """Return AWAITED; or BEHIND, if the bundle lacks the message of the node's leader; or 0."""
    if is_awaited(comm, node):
        return AWAITED
    nodes = comm.nodes
    distance = (nodes.own_node + nodes.nodes - node) % nodes.nodes
    return BEHIND if distance >= comm.links.gathered else 0


@routine
def failure_of_link(comm, node, reason):
    """Return how the verb has failed because a data link has ended, or carried a wrong frame.

    Within a little while the control link may tell more: that the leader at the other end has left,
    or how the verb of that leader has failed.
    """
    await_control(comm, node, EXPLANATION_MS)
    outcome = failure_of_verb(comm)
    if outcome == OK:
        lose(comm, node, reason)
        outcome = failure_of_verb(comm)
    return outcome


@routine
def await_control(comm, node, patience_ms):
    """Read a leader's control link; wait a little for a message that tells how the leader ended."""
    peer, leader = comm.links.peers[node], comm.nodes.leaders[node]
    now = libc.monotonic_ns()
    until = now + patience_ms * NS_PER_MS
    read_control(comm, node)
    while leader.condition == PRESENT and now < until:
        becomes_ready(comm, peer.control_fd, libc.POLLIN, -(-(until - now) // NS_PER_MS))
        read_control(comm, node)
        now = libc.monotonic_ns()


@routine
def read_control(comm, node):
    """Read everything that has arrived on a leader's control link."""
    peer = comm.links.peers[node]
    while peer.control_fd != NO_LINK:
        filled = peer.control_filled
        begin = peer.control.address + CONTROL_OFFSET + filled
        got = libc.receive(peer.control_fd, begin, CONTROL_BYTES - filled)
        if got == -libc.EAGAIN or got == -libc.EINTR:
            return
        if got <= 0:
            end_control(comm, node, _reason_of(got))
        elif filled + got < CONTROL_BYTES:
            peer.control_filled = filled + got
        else:
            peer.control_filled = 0
            if not _take_message(comm, node):
                peer.control_fd = NO_LINK
                lose(comm, node, GARBLED)


@routine
def _reason_of(result):
    """Return why nothing more arrives on a link, given the result of recv."""
    if result == -libc.EBADF:
        return CLOSED_HERE
    is_silent = result == -libc.ETIMEDOUT or result == -libc.EHOSTUNREACH
    return UNREACHABLE if is_silent else DIED


@routine
def end_control(comm, node, reason):
    """Stop using a control link; note its leader as lost for a reason, unless it has told why."""
    comm.links.peers[node].control_fd = NO_LINK
    note_end(comm, node, reason)


@routine
def _take_message(comm, node):
    """Read the words of a message, and take it in; tell whether the protocol knows it."""
    links, message = comm.links, comm.links.peers[node].control
    kind, number = control_kind(message), swap_bytes(message.number)
    count = words_of(comm, kind)
    is_known = 0 <= kind <= GOODBYE and (kind != RAISED or 0 <= number < comm.size)
    if not is_known or not is_control(message, kind, WORD_BYTES * count):
        return False
    fd, words = links.peers[node].control_fd, links.words_in
    if not receive_all(comm, fd, words, WORD_BYTES * count, REST_PATIENCE_MS):
        return False
    for index in range(count):
        at = words + WORD_BYTES * index
        poke(at, swap_bytes(peek(at)))
    take_in(comm, leader_of(comm.nodes, node), kind, number, words)
    return True
