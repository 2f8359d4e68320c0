"""The verbs exchange and alltoallv: each leader sends to every other one, on all links at once.

A leader compares each header that arrives with its own header. If the two differ, the leader
discards the payload behind the header, so that it can read the next frame of the link. One loop
moves bytes on all links that are ready. So a verb takes the time of the slowest link, and not the
sum of the times of all links.
"""

from cobre_kernels.collective import comm as states
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.collective.stop import hear
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import swap_bytes
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel, run_alone
from cobre_kernels.nodes.records import DIFFERS, TAKES_WHOLE
from cobre_kernels.nodes.verbs import Exchange, Scatter
from cobre_kernels.nodes.waiting import end_verb, note_progress
from cobre_kernels.tcp.frame import (
    FRAME_HEADER_BYTES,
    header_first,
    payload_bytes_of,
    read_header,
    write_header,
)
from cobre_kernels.tcp.progress.control import failure_of_link
from cobre_kernels.tcp.progress.sockets import (
    GARBLED,
    MORE,
    MOVED,
    NO_MORE,
    receive_two,
    send_two,
    without_bytes,
)
from cobre_kernels.tcp.progress.waiting import begin_links, pause
from cobre_kernels.tcp.tags import EXCHANGE, STRIPE


@kernel(COMM, Exchange)
def exchange_kernel(comm, call):
    """Send a header and payload to every other leader, and receive one of each, all at once."""
    nodes, own = comm.nodes, comm.nodes.own_node
    outcome = begin_links(comm)
    if outcome != OK:
        return end_verb(comm, outcome)
    for node in range(nodes.nodes):
        if node != own:
            _set_recv(comm, node, EXCHANGE, nodes.landing[node], nodes.recv_bytes[node])
            _set_send(comm, node, EXCHANGE, call.payload, call.payload_bytes)
    move(nodes.headers[own].address, nodes.header.address, call.size_bytes)
    return run_alone(comm.links.transfer, comm)


@kernel(COMM, Scatter)
def alltoallv_kernel(comm, call):
    """Send each leader its part behind a header, and receive a part from each, all at once."""
    nodes, own = comm.nodes, comm.nodes.own_node
    outcome = begin_links(comm)
    if outcome != OK:
        return end_verb(comm, outcome)
    for node in range(nodes.nodes):
        if node != own:
            _set_recv(comm, node, STRIPE, call.recv + nodes.recv_at[node], nodes.recv_bytes[node])
            _set_send(comm, node, STRIPE, call.send + nodes.send_at[node], nodes.send_bytes[node])
    target, source = call.recv + nodes.recv_at[own], call.send + nodes.send_at[own]
    if target != source:  # else a part of an allgatherv, which is there already
        move(target, source, nodes.send_bytes[own])
    return run_alone(comm.links.transfer, comm)


@routine
def _set_send(comm, node, tag, payload, size_bytes):
    """Set up a message to a leader: this leader's header, and a payload."""
    peer = comm.links.peers[node]
    write_header(comm, peer.header, tag, size_bytes)
    peer.header_left = FRAME_HEADER_BYTES
    peer.payload = payload
    peer.payload_left = size_bytes


@routine
def _set_recv(comm, node, tag, landing, size_bytes):
    """Set up the receipt of a message from a leader, with so many bytes of payload."""
    peer = comm.links.peers[node]
    peer.first_word = header_first(tag, 0, size_bytes)
    peer.landing = landing
    peer.filled = 0
    peer.wanted = FRAME_HEADER_BYTES + size_bytes


@kernel(COMM)
def transfer_kernel(comm):
    """Move all messages that are set up, and end the verb; compiled once for both verbs."""
    outcome, activity = OK, MORE
    while outcome == OK and activity & MORE:
        activity = NO_MORE
        for step in range(comm.nodes.nodes):  # each leader begins at another node: its own
            node = (comm.nodes.own_node + step) % comm.nodes.nodes
            moved = send_message(comm, node)
            if moved >= 0:
                activity |= moved
                moved = _receive(comm, node)
                activity |= max(moved, 0)
            if moved < 0:
                reason = states.GARBLED if moved == GARBLED else states.DIED
                return end_verb(comm, failure_of_link(comm, node, reason))
        if activity & MOVED:
            note_progress(comm)
        else:
            outcome = pause(comm)
    return end_verb(comm, outcome)


@routine
def send_message(comm, node):
    """Send as much of the message to a leader as the socket takes."""
    peer = comm.links.peers[node]
    header_left, payload_left = peer.header_left, peer.payload_left
    if header_left + payload_left == 0:
        return NO_MORE
    header = peer.header.address + FRAME_HEADER_BYTES - header_left
    sent = send_two(comm, peer.data_fd, header, header_left, peer.payload, payload_left)
    if sent < 0:
        return without_bytes(sent)
    header_sent = min(sent, header_left)
    payload_sent = sent - header_sent
    peer.header_left = header_left - header_sent
    peer.payload += payload_sent
    peer.payload_left = payload_left - payload_sent
    return MOVED | (MORE if sent < header_left + payload_left else NO_MORE)


@routine
def _receive(comm, node):
    """Receive what is here of a leader's message; compare the header when it is complete."""
    peer = comm.links.peers[node]
    filled, wanted = peer.filled, peer.wanted
    if filled == wanted:
        return NO_MORE
    header_left = max(FRAME_HEADER_BYTES - filled, 0)
    payload_bytes = wanted - filled - header_left
    header = peer.inbox.address + filled
    payload = peer.landing + filled + header_left - FRAME_HEADER_BYTES
    if header_left == 0:
        got = libc.receive(peer.data_fd, payload, payload_bytes)
    elif payload_bytes == 0:
        got = libc.receive(peer.data_fd, header, header_left)
    else:
        got = receive_two(comm, peer.data_fd, header, header_left, payload, payload_bytes)
    if got <= 0:
        return without_bytes(got)
    peer.filled = filled + got
    if header_left > 0 and got >= header_left and not _take_header(comm, node):
        return GARBLED
    return MOVED | (MORE if peer.filled < peer.wanted else NO_MORE)


@routine
def _take_header(comm, node):
    """Compare a leader's header with this leader's; tell whether the frame is of the protocol."""
    peer, row = comm.links.peers[node], comm.nodes.headers[node]
    header = peer.inbox
    if swap_bytes(header.verb) != comm.nodes.begun:
        return False
    read_header(header, row)
    if takes_payload(comm, row):
        return header.first == peer.first_word | (row.marks & TAKES_WHOLE) << 40
    return _discard_payload(comm, peer)


@routine
def takes_payload(comm, row):
    """Tell whether a leader's header is of this leader's call, so that its payload is due here."""
    difference = hear(comm, row.signature ^ comm.signature)
    return row.marks & DIFFERS == 0 and difference == 0 and row.compared == comm.compared


@routine
def _discard_payload(comm, peer):
    """Let the payload of another call go where no rank reads it; tell if its length is possible.

    If the payload is shorter than expected, bytes of the next frame may have arrived behind it.
    These bytes are kept, and the next receipt begins with them.
    """
    payload_bytes = payload_bytes_of(peer.inbox)
    if not 0 <= payload_bytes <= comm.links.eager_bytes:
        return False
    wanted = FRAME_HEADER_BYTES + payload_bytes
    if peer.filled > wanted:
        peer.surplus = peer.landing + payload_bytes
        peer.surplus_bytes = peer.filled - wanted
        peer.filled = wanted
    peer.wanted = wanted
    peer.landing = comm.links.staging
    return True
