"""Control messages: liveness queries and answers, goodbyes, failure reports.

The control link between two ranks carries nothing else. Its messages are small and rare. What they
mean for a step is decided in ``failing.py``.
"""

from cobre_kernels.collective.calls import Outcome
from cobre_kernels.collective.comm import COMM, DIED, GARBLED, GAVE_UP, LEFT, UNREACHABLE
from cobre_kernels.collective.status import INTERRUPTED, OK, UNSEEN
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import swap_bytes
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp.frame import (
    CONTROL_BYTES,
    CONTROL_OFFSET,
    control_tag,
    swap_rows,
    write_control,
)
from cobre_kernels.tcp.links import FAILURE_BYTES, MEMBER, NO_LINK
from cobre_kernels.tcp.progress.sockets import NS_PER_MS, becomes_ready, receive_all, send_all
from cobre_kernels.tcp.protocol import QUERY_NS, REST_PATIENCE_MS, SEND_PATIENCE_MS
from cobre_kernels.tcp.tags import FAILURE, SHUTDOWN, WAITING


@routine
def query_liveness(comm, now):
    """Tell all others that this rank waits in its step; not again within QUERY_NS."""
    links = comm.links
    if now - links.queried_ns >= QUERY_NS:
        links.queried_ns = now
        write_control(comm, links.control, WAITING, OK, 0)
        _send_to_all(comm, links.control, 0)


@kernel(COMM)
def goodbye_kernel(comm):
    """Tell all others that this rank closes, and the last step that it has completed."""
    write_control(comm, comm.links.control, SHUTDOWN, OK, 0)
    _send_to_all(comm, comm.links.control, 0)
    return OK


@kernel(COMM, Outcome)
def abandon_body(comm, call):
    """Send the failure report: how this step failed, and what is known of every rank.

    Also a rank that adopted another rank's report sends one: either may be read first.
    """
    links = comm.links
    is_own = call.status == INTERRUPTED or call.status == UNSEEN  # of this rank alone
    rows_bytes = 0 if is_own else comm.size * FAILURE_BYTES
    write_control(comm, links.report, FAILURE, call.status, rows_bytes)
    swap_rows(comm.size, links.report_rows, comm.failures)
    _send_to_all(comm, links.report, rows_bytes)
    return OK


@routine
def _send_to_all(comm, message, rows_bytes):
    """Send a control message, and the rows that follow it, to every rank that is still there."""
    for rank in range(comm.size):
        fd = comm.links.peers[rank].control_fd
        if fd != NO_LINK:
            begin = message.address + CONTROL_OFFSET
            send_all(comm, fd, begin, CONTROL_BYTES + rows_bytes, SEND_PATIENCE_MS)


@routine
def read_all_control(comm):
    """Read every control link, in case nothing has made this rank look for long."""
    comm.links.swept = comm.generation
    for rank in range(comm.size):
        read_control(comm, rank)


@routine
def await_control(comm, rank, patience_ms):
    """Read a rank's control link; wait a little until it has told how the rank ended."""
    peer = comm.links.peers[rank]
    now = libc.monotonic_ns()
    until = now + patience_ms * NS_PER_MS
    read_control(comm, rank)
    while peer.condition == MEMBER and now < until:
        becomes_ready(comm, peer.control_fd, libc.POLLIN, -(-(until - now) // NS_PER_MS))
        read_control(comm, rank)
        now = libc.monotonic_ns()


@routine
def read_control(comm, rank):
    """Read all that a rank's control link has; note it in the rank's record."""
    peer = comm.links.peers[rank]
    while peer.control_fd != NO_LINK:
        filled = peer.control_filled
        begin = peer.control.address + CONTROL_OFFSET + filled
        got = libc.receive(peer.control_fd, begin, CONTROL_BYTES - filled)
        if got == -libc.EAGAIN or got == -libc.EINTR:
            return
        if got <= 0:
            is_silent = got == -libc.ETIMEDOUT or got == -libc.EHOSTUNREACH
            end_control(peer, UNREACHABLE if is_silent else DIED)
        elif filled + got < CONTROL_BYTES:
            peer.control_filled = filled + got
        else:
            peer.control_filled = 0
            _take_in(comm, peer)


@routine
def end_control(peer, reason):
    """Note that nothing more comes on a control link; unless it told why, that is the reason."""
    peer.control_fd = NO_LINK
    if peer.condition == MEMBER:
        peer.condition = reason


@routine
def _take_in(comm, peer):
    """Note a control message: rows "query", "goodbye" and "report" of the protocol."""
    tag, step = control_tag(peer.control), swap_bytes(peer.control.step)
    if tag == WAITING:
        peer.heard_ns = libc.monotonic_ns()
    elif tag == SHUTDOWN:
        peer.condition = LEFT
        peer.completed = step
    elif tag == FAILURE and _take_report(comm, peer, step):
        peer.condition = GAVE_UP
        peer.completed = step - 1
    else:
        peer.control_fd = NO_LINK
        peer.condition = GARBLED


@routine
def _take_report(comm, peer, step):
    """Read the rows of a failure report; keep those of the earliest step; tell if all is well."""
    links = comm.links
    rows_bytes = 8 * comm.size * swap_bytes(peer.control.row_words)
    if rows_bytes == 0:
        return True
    begin = links.report_rows[0].address
    if rows_bytes != comm.size * FAILURE_BYTES:
        return False
    if not receive_all(comm, peer.control_fd, begin, rows_bytes, REST_PATIENCE_MS):
        return False
    if links.reported_status == OK or step < links.reported_step:
        links.reported_status = swap_bytes(peer.control.status)
        links.reported_step = step
        swap_rows(comm.size, links.reported, links.report_rows)
    return True
