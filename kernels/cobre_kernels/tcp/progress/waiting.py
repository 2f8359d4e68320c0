"""How a leader waits at its sockets, between two progress steps in vain.

It blocks in poll(2) on what it waits for and on all control links, so that a death, a failure or a
goodbye anywhere ends its wait. The timeout counts from when the last byte moved: a slow link is not
a late rank. ``collective/waiting/patience.py`` has the policy.
"""

from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.collective.waiting import patience
from cobre_kernels.collective.waiting.patience import (
    Patience,
    begin_anew,
    end_wait,
    look_around_soon,
)
from cobre_kernels.collective.waiting.pulse import beat
from cobre_kernels.machine import libc
from cobre_kernels.machine.kernel import kernel, run_alone
from cobre_kernels.machine.routine import routine
from cobre_kernels.nodes.records import leader_of
from cobre_kernels.nodes.waiting import begin_verb, failure_of_verb
from cobre_kernels.tcp.links import NO_LINK, NOBODY
from cobre_kernels.tcp.progress.control import (
    is_awaited,
    read_control,
    take_end_of_process,
)
from cobre_kernels.tcp.progress.sockets import NS_PER_MS

SWEEP_EVERY = 256  # verbs; what leaders may tell meanwhile fits any socket's buffer


@routine
def begin_links(comm):
    """Begin a verb; return OK, or how it has failed. Read control links that were not for long."""
    links = comm.links
    links.awaited_in = NOBODY
    links.awaited_out = NOBODY
    links.wants_in = 0
    links.wants_out = 0
    if comm.nodes.begun - links.swept >= SWEEP_EVERY:
        run_alone(comm.nodes.read, comm)
    return begin_verb(comm)


@routine
def note_progress(comm):
    """Bytes have moved: waiting begins anew."""
    beat(comm)
    end_wait(comm, OK)
    begin_anew(comm)


@routine
def pause(comm):
    """Let time pass between two fruitless progress steps; return OK, or how the wait ended."""
    comm.wait.awaited = _first_awaited(comm)
    return patience.pause(comm, 1)


@routine
def _first_awaited(comm):
    """Return the first leader that this one waits for, or NOBODY."""
    first = NOBODY
    for node in range(comm.nodes.nodes - 1, -1, -1):
        if is_awaited(comm, node):
            first = leader_of(comm.nodes, node)
    return first


@kernel(COMM, Patience)
def block_kernel(comm, call):
    """Sleep until something can move, or a control message comes."""
    data, count = _list_descriptors(comm)
    patience_ms = -(-call.longest_ns // NS_PER_MS)
    ready = libc.poll(comm.links.polls[0].address, count, patience_ms)
    if ready <= 0:
        look_around_soon(comm)
        return OK
    return OK if _has_events(comm, data) else _read_ready_control(comm, data)


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
    """Read the control links that have something; return what follows."""
    index = first
    for node in range(comm.nodes.nodes):
        peer = comm.links.peers[node]
        if peer.control_fd != NO_LINK:
            is_watched = peer.process_fd != NO_LINK
            if _events(comm, index) != 0:
                read_control(comm, node)
            if is_watched and _events(comm, index + 1) != 0:
                take_end_of_process(comm, node)
            index += 2 if is_watched else 1
    return failure_of_verb(comm)
