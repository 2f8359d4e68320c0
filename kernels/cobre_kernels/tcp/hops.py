"""The verb exchange by hops: a leader sends one message in each of ceil(log2 N) hops.

In the hop of distance d = 1, 2, 4, ... leader k sends the messages of leaders k, k - 1, ...,
k - d + 1 to leader k + d, all behind one another: a *bundle*. From leader k - d it receives those
of leaders k - d, k - d - 1, ... So after the hop it has the messages of 2 d leaders, and in the end
those of all. A message is what ``exchange.py`` sends: header, and payload if there is any. Leaders
pass a message on as it is, with zeros behind it up to a multiple of a word.

A leader checks each message when it arrives, before it passes the message on. So the first leader
that gets garbled bytes names the leader that has sent them.

In a hop, a leader waits for the bytes of one neighbour only. The leaders of all other missing
messages are awaited BEHIND that neighbour (``progress/control.py``). These leaders are asked too
whether they wait, so every leader finds out which of them are late. All links remain, so every
leader sees the end of any other leader, and gets its report.

``docs/design/tcp-protocol.md`` says when leaders take this way. Sources: Hensgen, Finkel, Manber,
"Two algorithms for barrier synchronization", 1988; Bruck and others, "Efficient algorithms for
all-to-all communications in multiport message-passing systems", 1997.
"""

from cobre_kernels.collective import comm as states
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.atomics import swap_bytes
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.record import WORD_BYTES
from cobre_kernels.nodes.records import TAKES_WHOLE
from cobre_kernels.nodes.verbs import Exchange
from cobre_kernels.nodes.waiting import end_verb, note_progress
from cobre_kernels.tcp.exchange import send_message, takes_payload
from cobre_kernels.tcp.frame import (
    FRAME_HEADER_BYTES,
    header_first,
    payload_bytes_of,
    read_header,
    write_header,
)
from cobre_kernels.tcp.links import node_before
from cobre_kernels.tcp.progress.control import failure_of_link
from cobre_kernels.tcp.progress.sockets import (
    GARBLED,
    MORE,
    MOVED,
    NO_MORE,
    receive_data,
    without_bytes,
)
from cobre_kernels.tcp.progress.waiting import begin_links, pause
from cobre_kernels.tcp.tags import EXCHANGE


@kernel(COMM, Exchange)
def exchange_by_hops_kernel(comm, call):
    """Gather the messages of all leaders, then bring their payloads to the right places."""
    links, nodes = comm.links, comm.nodes
    outcome = begin_links(comm)
    if outcome == OK:
        _begin(comm, call)
    while outcome == OK and links.gathered < nodes.nodes:
        outcome = _hop(comm, links.gathered)
    if outcome == OK:
        _take_payloads(comm)
    return end_verb(comm, outcome)


@routine
def bundled_bytes(payload_bytes):
    """Return the bytes of a message in a bundle, where each message begins at a word."""
    return FRAME_HEADER_BYTES + -(-payload_bytes // WORD_BYTES) * WORD_BYTES


@routine
def _begin(comm, call):
    """Let the bundle begin with this leader's own message."""
    links, nodes = comm.links, comm.nodes
    own = links.peers[nodes.own_node]
    move(nodes.headers[nodes.own_node].address, nodes.header.address, call.size_bytes)
    write_header(comm, own.header, EXCHANGE, call.payload_bytes)
    move(links.bundle, own.header.address, FRAME_HEADER_BYTES)
    move(links.bundle + FRAME_HEADER_BYTES, call.payload, call.payload_bytes)
    links.ends[0] = bundled_bytes(call.payload_bytes)
    links.gathered = 1


@routine
def _hop(comm, distance):
    """Send the gathered messages that are new to the receiver, and receive as many messages."""
    links, nodes = comm.links, comm.nodes
    until = min(2 * distance, nodes.nodes)
    target, source = node_before(comm, nodes.nodes - distance), node_before(comm, distance)
    to, peer = links.peers[target], links.peers[source]
    to.payload, to.payload_left = links.bundle, links.ends[until - distance - 1]
    peer.landing, peer.filled = links.bundle + links.ends[distance - 1], 0
    peer.wanted = _due_bytes(comm, until)
    outcome, activity = OK, MORE
    while outcome == OK and activity & MORE:
        sent = send_message(comm, target)
        received = _receive(comm, source, until)
        activity = sent | received
        if received < 0:
            reason = states.GARBLED if received == GARBLED else states.DIED
            return failure_of_link(comm, source, reason)
        if sent < 0:
            return failure_of_link(comm, target, states.DIED)
        if activity & MOVED:
            note_progress(comm)
        elif activity & MORE:
            outcome = pause(comm)
    return outcome


@routine
def _due_bytes(comm, until):
    """Return the bytes of the messages that this hop still receives, if all leaders agree."""
    due = 0
    for index in range(comm.links.gathered, until):
        due += bundled_bytes(comm.nodes.recv_bytes[node_before(comm, index)])
    return due


@routine
def _receive(comm, source, until):
    """Receive what is here of a bundle; check each message when its header is complete."""
    peer = comm.links.peers[source]
    if peer.filled == peer.wanted:
        return NO_MORE
    got = receive_data(peer, peer.landing + peer.filled, peer.wanted - peer.filled)
    if got <= 0:
        return without_bytes(got)
    peer.filled += got
    if not _take_messages(comm, peer, until):
        return GARBLED
    return MOVED | (MORE if peer.filled < peer.wanted else NO_MORE)


@routine
def _take_messages(comm, peer, until):
    """Count the messages that are complete, and set how many bytes the bundle has.

    Tell whether all that is here is of the protocol.
    """
    links = comm.links
    here = peer.landing + peer.filled
    while links.gathered < until:
        begin = links.ends[links.gathered - 1]
        left = here - links.bundle - begin
        if left < FRAME_HEADER_BYTES:
            peer.wanted = peer.filled - left + _due_bytes(comm, until)
            return True
        node = node_before(comm, links.gathered)
        move(peer.inbox.address, links.bundle + begin, FRAME_HEADER_BYTES)
        if not _is_right(comm, peer.inbox, node):
            return False
        size_bytes = bundled_bytes(payload_bytes_of(peer.inbox))
        if left < size_bytes:
            as_agreed = bundled_bytes(comm.nodes.recv_bytes[node])
            peer.wanted = peer.filled - left + _due_bytes(comm, until) + size_bytes - as_agreed
            return True
        links.ends[links.gathered] = begin + size_bytes
        links.gathered += 1
    return _keep_surplus(comm, peer)


@routine
def _is_right(comm, header, node):
    """Read the header of a leader's message; tell whether it is of the protocol."""
    row = comm.nodes.headers[node]
    if swap_bytes(header.verb) != comm.nodes.begun:
        return False
    read_header(header, row)
    if takes_payload(comm, row):
        first = header_first(EXCHANGE, row.marks & TAKES_WHOLE, comm.nodes.recv_bytes[node])
        return header.first == first
    return 0 <= payload_bytes_of(header) <= comm.links.eager_bytes


@routine
def _keep_surplus(comm, peer):
    """Keep bytes of the next frame, if the calls differ and the message was shorter than expected.

    The next frame belongs to the ring, so only the neighbour of the first hop can send it.
    """
    links = comm.links
    end = links.bundle + links.ends[links.gathered - 1]
    surplus_bytes = peer.landing + peer.filled - end
    peer.filled = end - peer.landing
    peer.wanted = peer.filled
    if surplus_bytes > 0:
        move(links.staging, end, surplus_bytes)
        peer.surplus = links.staging
        peer.surplus_bytes = surplus_bytes
    return surplus_bytes == 0 or links.gathered == 2


@routine
def _take_payloads(comm):
    """Copy each payload that belongs to this leader's call to its landing."""
    links, nodes = comm.links, comm.nodes
    for index in range(1, nodes.nodes):
        node = node_before(comm, index)
        if nodes.recv_bytes[node] > 0 and takes_payload(comm, nodes.headers[node]):
            payload = links.bundle + links.ends[index - 1] + FRAME_HEADER_BYTES
            move(nodes.landing[node], payload, nodes.recv_bytes[node])
