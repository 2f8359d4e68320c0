"""Control messages: liveness queries and answers, and the verbs goodbye and report.

The control link between two leaders carries nothing else. Its messages are small and rare. What
they mean for a step is decided in ``failing.py``.
"""

from cobre_kernels.collective.calls import Outcome
from cobre_kernels.collective.comm import COMM, DIED, GARBLED, GAVE_UP, LEFT, UNREACHABLE
from cobre_kernels.collective.seeing.journal import (
    NOBODY,
    RAISED_BYTES,
    RAISED_ROWS,
    note_raised,
    take_raised,
)
from cobre_kernels.collective.status import DISAGREE, OK
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import swap_bytes
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.record import WORD_BYTES
from cobre_kernels.machine.routine import routine
from cobre_kernels.nodes.records import leader_of
from cobre_kernels.tcp.frame import CONTROL_BYTES, CONTROL_OFFSET, control_first, control_tag
from cobre_kernels.tcp.links import CLOSED_HERE, MEMBER, NO_LINK
from cobre_kernels.tcp.progress.sockets import NS_PER_MS, becomes_ready, receive_all, send_all
from cobre_kernels.tcp.protocol import QUERY_NS, REST_PATIENCE_MS, SEND_PATIENCE_MS
from cobre_kernels.tcp.tags import FAILURE, RAISED, SHUTDOWN, WAITING


@routine
def query_liveness(comm, now):
    """Tell all others that this leader waits in its step; not again within QUERY_NS."""
    if now - comm.links.queried_ns >= QUERY_NS:
        comm.links.queried_ns = now
        _send_to_all(comm, comm.links.control, WAITING, comm.generation, 0)


@kernel(COMM)
def goodbye_kernel(comm):
    """Tell all others the last step that this leader has completed: it takes part in no more."""
    _say_goodbye(comm)
    return OK


@routine
def _say_goodbye(comm):
    _send_raised(comm)
    _send_to_all(comm, comm.links.control, SHUTDOWN, comm.generation, 0)


@routine
def _send_raised(comm):
    """Send what ranks have raised, as far as this leader knows."""
    for row in range(RAISED_ROWS):
        rank = take_raised(comm.journal, row, comm.links.raised_words)
        if rank != NOBODY:
            _send_to_all(comm, comm.links.raised, RAISED, rank, RAISED_BYTES)


@kernel(COMM, Outcome)
def report_kernel(comm, call):
    """Send the failure report: why each rank takes no further part, by the failure records.

    After a disagreement, of which all have heard, a goodbye. Also a leader that adopted another
    report sends one: either may be read first.
    """
    if call.status == DISAGREE:
        _say_goodbye(comm)
        return OK
    for rank in range(comm.size):
        comm.links.report_rows[rank] = swap_bytes(comm.failures[rank].reason)
    _send_raised(comm)
    _send_to_all(comm, comm.links.report, FAILURE, comm.generation, comm.size * WORD_BYTES)
    return OK


@routine
def _send_to_all(comm, message, tag, step, rows_bytes):
    """Send a control message, and its rows, to every leader that is still there."""
    message.first = control_first(tag, rows_bytes)
    message.step = swap_bytes(step)
    for node in range(comm.nodes.nodes):
        fd = comm.links.peers[node].control_fd
        if fd != NO_LINK:
            begin = message.address + CONTROL_OFFSET
            send_all(comm, fd, begin, CONTROL_BYTES + rows_bytes, SEND_PATIENCE_MS)


@routine
def read_all_control(comm):
    """Read every control link, in case nothing has made this leader look for long."""
    comm.links.swept = comm.generation
    for node in range(comm.nodes.nodes):
        read_control(comm, node)


@routine
def await_control(comm, node, patience_ms):
    """Read a leader's control link; wait a little until it has told how the leader ended."""
    peer = comm.links.peers[node]
    now = libc.monotonic_ns()
    until = now + patience_ms * NS_PER_MS
    read_control(comm, node)
    while peer.condition == MEMBER and now < until:
        becomes_ready(comm, peer.control_fd, libc.POLLIN, -(-(until - now) // NS_PER_MS))
        read_control(comm, node)
        now = libc.monotonic_ns()


@routine
def read_control(comm, node):
    """Read all that a leader's control link has; note it in its record."""
    peer = comm.links.peers[node]
    while peer.control_fd != NO_LINK:
        filled = peer.control_filled
        begin = peer.control.address + CONTROL_OFFSET + filled
        got = libc.receive(peer.control_fd, begin, CONTROL_BYTES - filled)
        if got == -libc.EAGAIN or got == -libc.EINTR:
            return
        if got <= 0:
            if got == -libc.EBADF:
                end_control(peer, CLOSED_HERE)
            is_silent = got == -libc.ETIMEDOUT or got == -libc.EHOSTUNREACH
            end_control(peer, UNREACHABLE if is_silent else DIED)
        elif filled + got < CONTROL_BYTES:
            peer.control_filled = filled + got
        else:
            peer.control_filled = 0
            _take_in(comm, node)


@routine
def end_control(peer, reason):
    """Note that nothing more comes on a control link; unless it told why, that is the reason."""
    peer.control_fd = NO_LINK
    if peer.condition == MEMBER:
        peer.condition = reason


@routine
def _take_in(comm, node):
    """Note a control message: rows "query", "goodbye", "report", "raised" of the protocol."""
    peer = comm.links.peers[node]
    tag, step = control_tag(peer.control), swap_bytes(peer.control.step)
    if peer.control.first >> 24 << 24 == control_first(tag, _rows_bytes(comm, tag)):
        if tag == WAITING:
            peer.heard_ns = libc.monotonic_ns()
            query_liveness(comm, peer.heard_ns)
            return
        if tag == SHUTDOWN:
            peer.condition = LEFT
            peer.completed = step
            return
        if tag == RAISED and 0 <= step < comm.size and _take_raised(comm, node, step):
            return
        if tag == FAILURE and _take_report(comm, node, step):
            peer.condition = GAVE_UP
            peer.completed = step - 1
            return
    peer.control_fd = NO_LINK
    peer.condition = GARBLED


@routine
def _rows_bytes(comm, tag):
    if tag == FAILURE:
        return comm.size * WORD_BYTES
    return RAISED_BYTES if tag == RAISED else 0


@routine
def _take_raised(comm, node, rank):
    """Read by which exception a rank has ended, and note it; tell if that came."""
    fd, words = comm.links.peers[node].control_fd, comm.links.raised_words
    if not receive_all(comm, fd, words, RAISED_BYTES, REST_PATIENCE_MS):
        return False
    note_raised(comm.journal, rank, words)
    return True


@routine
def _take_report(comm, node, step):
    """Read the rows of a failure report; keep those of the earliest step; tell if they came."""
    links, rows = comm.links, comm.links.report.address + CONTROL_OFFSET + CONTROL_BYTES
    rows_bytes = _rows_bytes(comm, FAILURE)
    if not receive_all(comm, links.peers[node].control_fd, rows, rows_bytes, REST_PATIENCE_MS):
        return False
    if links.has_report == 0 or step < links.reported_step:
        links.has_report = 1
        links.reported_step = step
        links.reporter = leader_of(comm.nodes, node)
        for rank in range(comm.size):
            links.reported[rank] = swap_bytes(links.report_rows[rank])
    return True
