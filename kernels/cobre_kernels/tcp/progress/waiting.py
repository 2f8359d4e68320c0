"""How a leader waits at its sockets, between two progress steps that move nothing.

The leader blocks in poll(2) on the data links that it waits for, and on all control links. So the
death, the failure report or the goodbye of any leader wakes this leader, which then reads messages.
The timeout counts from the last byte that moved, because a slow link is no late rank.
``collective/waiting/patience.py`` has the policy.
"""

from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.collective.waiting import patience
from cobre_kernels.collective.waiting.patience import Patience, look_around_soon
from cobre_kernels.machine import libc
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.kernel import kernel, run_alone
from cobre_kernels.nodes.records import leader_of
from cobre_kernels.nodes.waiting import begin_verb
from cobre_kernels.tcp.links import NO_LINK, NOBODY
from cobre_kernels.tcp.progress.control import is_awaited
from cobre_kernels.tcp.progress.sockets import NS_PER_MS

SWEEP_EVERY = 256  # verbs; the messages of so many verbs fit the buffer of any socket


@routine
def begin_links(comm):
    """Begin a verb; return OK, or how it has failed. Now and then, first read all control links."""
    links = comm.links
    links.awaited_in = NOBODY
    links.awaited_out = NOBODY
    links.wants_in = 0
    links.wants_out = 0
    links.gathered = comm.nodes.nodes
    if comm.nodes.begun - links.swept >= SWEEP_EVERY:
        run_alone(comm.nodes.read, comm)
    return begin_verb(comm)


@routine
def pause(comm):
    """Let time pass between two progress steps without progress; return OK, or the wait's end."""
    comm.wait.awaited = _first_awaited(comm)
    return patience.pause(comm, 1)


@routine
def _first_awaited(comm):
    """Return the first leader that this leader waits for, or NOBODY."""
    first = NOBODY
    for node in range(comm.nodes.nodes - 1, -1, -1):
        if is_awaited(comm, node):
            first = leader_of(comm.nodes, node)
    return first


@kernel(COMM, Patience)
def block_kernel(comm, call):
    """Sleep until bytes can move, or until a control message arrives, which the next poll reads."""
    data, count = _list_descriptors(comm)
    patience_ms = -(-call.longest_ns // NS_PER_MS)
    ready = libc.poll(comm.links.polls[0].address, count, patience_ms)
    if ready <= 0 or not _has_events(comm, data):
        look_around_soon(comm)
    return OK


@routine
def _list_descriptors(comm):
    """Fill the entries for poll: first awaited data links, then control links and processes."""
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
def _has_events(comm, count):
    """Tell whether poll has found an event for one of the first ``count`` entries."""
    found = 0
    for index in range(count):
        found |= comm.links.polls[index].entry >> 48 & 0xFFFF
    return found != 0
