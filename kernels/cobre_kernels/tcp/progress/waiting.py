"""How a leader waits at its sockets, between two progress steps in vain.

It blocks in poll(2) on what it waits for and on all control links, so that a death, a failure or a
goodbye anywhere ends its wait. The timeout counts from when the last byte moved: a slow link is not
a late rank. ``collective/waiting/patience.py`` has the policy.
"""

from cobre_kernels.collective.comm import COMM, DIED
from cobre_kernels.collective.status import OK
from cobre_kernels.collective.waiting import patience
from cobre_kernels.collective.waiting.patience import (
    Look,
    Patience,
    begin_anew,
    begin_wait,
    end_wait,
    look_around_soon,
    write_late_line,
)
from cobre_kernels.collective.waiting.pulse import beat
from cobre_kernels.machine import libc
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp.links import NO_LINK, NOBODY
from cobre_kernels.tcp.progress.control import (
    await_control,
    end_control,
    read_all_control,
    read_control,
)
from cobre_kernels.tcp.progress.failing import (
    failure_by_timeout,
    failure_of_step,
    first_awaited,
    mark_late,
)
from cobre_kernels.tcp.progress.sockets import NS_PER_MS
from cobre_kernels.tcp.protocol import EXPLANATION_MS


@routine
def begin_verb(comm):
    """Begin to move bytes; nothing is known yet of how long that takes."""
    links = comm.links
    links.awaited_in = NOBODY
    links.awaited_out = NOBODY
    links.wants_in = 0
    links.wants_out = 0
    begin_wait(comm)


@routine
def note_progress(comm):
    """Bytes have moved: waiting begins anew."""
    beat(comm)
    end_wait(comm, OK)
    begin_anew(comm)


@routine
def pause(comm):
    """Let time pass between two fruitless progress steps; return OK, or how the wait ended."""
    comm.wait.awaited = first_awaited(comm)
    outcome = patience.pause(comm, 1)
    if outcome != OK:
        end_wait(comm, outcome)
    return outcome


@kernel(COMM, Patience)
def block_kernel(comm, call):
    """Sleep until something can move, or a control message comes."""
    outcome = failure_of_step(comm)  # by what came while this leader was elsewhere
    if outcome != OK:
        return outcome
    data, count = _list_descriptors(comm)
    patience_ms = -(-call.longest_ns // NS_PER_MS)
    ready = libc.poll(comm.links.polls[0].address, count, patience_ms)
    if ready <= 0:
        look_around_soon(comm)
        return OK
    return OK if _has_events(comm, data) else _read_ready_control(comm, data)


@kernel(COMM, Look)
def look_around_kernel(comm, call):
    """Read what control links have, also while bytes move; find out who is lost, or late."""
    read_all_control(comm)
    outcome = failure_of_step(comm)
    if outcome == OK and call.is_line_due != 0:
        mark_late(comm)
        write_late_line(comm)
        comm.wait.lines += 1
    if outcome == OK and call.is_overdue != 0:
        outcome = failure_by_timeout(comm)
    return outcome


@routine
def _list_descriptors(comm):
    """Fill the entries for poll: what is awaited, then control links and processes."""
    links = comm.links
    count = 0
    for node in range(comm.nodes.nodes):
        peer = links.peers[node]
        events = libc.POLLIN if peer.filled < peer.wanted else 0
        if peer.header_left + peer.payload_left > 0:
            events |= libc.POLLOUT
        if events != 0:
            count = _list(links, count, peer.data_fd, events)
    if links.wants_in != 0:
        count = _list(links, count, links.previous.data_fd, libc.POLLIN)
    if links.wants_out != 0:
        count = _list(links, count, links.next.data_fd, libc.POLLOUT)
    data = count
    for node in range(comm.nodes.nodes):
        peer = links.peers[node]
        if peer.control_fd != NO_LINK:
            count = _list(links, count, peer.control_fd, libc.POLLIN)
            if peer.process_fd != NO_LINK:
                count = _list(links, count, peer.process_fd, libc.POLLIN)
    return data, count


@routine
def _list(links, count, fd, events):
    links.polls[count].entry = fd | events << 32
    return count + 1


@routine
def _events(comm, index):
    """Return what poll has found for an entry."""
    return comm.links.polls[index].entry >> 48 & 0xFFFF


@routine
def _has_events(comm, count):
    found = 0
    for index in range(count):
        found |= _events(comm, index)
    return found != 0


@routine
def _read_ready_control(comm, first):
    """Read the control links that have something; return what follows.

    A process that has ended is as a control link that ends, once what it has sent is read.
    """
    index = first
    for node in range(comm.nodes.nodes):
        peer = comm.links.peers[node]
        if peer.control_fd != NO_LINK:
            is_watched = peer.process_fd != NO_LINK
            if _events(comm, index) != 0:
                read_control(comm, node)
            if is_watched and _events(comm, index + 1) != 0:
                await_control(comm, node, EXPLANATION_MS)
                end_control(peer, DIED)
            index += 2 if is_watched else 1
    return failure_of_step(comm)


KERNELS = (patience.pause_kernel, block_kernel, look_around_kernel)
