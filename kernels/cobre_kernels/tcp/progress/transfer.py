"""Messages on the star: all that are posted move at once.

A message comes into the peer's inbox, header first. The header is compared with this rank's call
before the payload is believed. One loop moves bytes on all links that are ready, so the slowest
link sets the time and not the sum of all.
"""

from cobre_kernels.collective import comm as states
from cobre_kernels.collective.calls import CALLED
from cobre_kernels.collective.comm import ARRIVED, COMM
from cobre_kernels.collective.journal import note_arrival
from cobre_kernels.collective.status import DISAGREE, OK
from cobre_kernels.collective.stop import hear
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import swap_bytes
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp.frame import HEADER_BYTES
from cobre_kernels.tcp.links import AGREES, DISAGREES, UNREAD, is_coordinator, star_peers
from cobre_kernels.tcp.progress.control import read_all_control
from cobre_kernels.tcp.progress.failing import failure_of_link
from cobre_kernels.tcp.progress.pause import note_progress, pause
from cobre_kernels.tcp.progress.sockets import (
    BUSY,
    GARBLED,
    IDLE,
    MOVED,
    send_two,
    without_bytes,
)
from cobre_kernels.tcp.protocol import SWEEP_EVERY
from cobre_kernels.tcp.star import PAIR


@kernel(COMM)
def transfer_kernel(comm):
    """Move what is posted; return OK, DISAGREE once every peer has told its call, or worse."""
    first, end = star_peers(comm)
    if comm.generation - comm.links.swept >= SWEEP_EVERY:
        read_all_control(comm)
    while True:
        activity = IDLE
        for rank in range(first, end):
            peer = comm.links.peers[rank]
            outcome = _send(comm, peer)
            if outcome >= 0:
                activity |= outcome
                outcome = _receive(comm, rank)
                activity |= max(outcome, 0)
            if outcome < 0:
                reason = states.GARBLED if outcome == GARBLED else states.DIED
                return failure_of_link(comm, rank, reason)
        if activity & MOVED:
            note_progress(comm)
        if activity & BUSY == 0:
            return _agreement(comm, first, end)
        if activity & MOVED == 0:
            outcome = pause(comm)
            if outcome != OK:
                return outcome


@routine
def _send(comm, peer):
    """Send what the socket takes of the message to a peer."""
    header_left, payload_left = peer.header_left, peer.payload_left
    if header_left + payload_left == 0:
        return IDLE
    header = peer.header.address + HEADER_BYTES - header_left
    sent = send_two(comm, peer.star_fd, header, header_left, peer.payload, payload_left)
    if sent < 0:
        return without_bytes(sent)
    header_sent = min(sent, header_left)
    payload_sent = sent - header_sent
    peer.header_left = header_left - header_sent
    peer.payload += payload_sent
    peer.payload_left = payload_left - payload_sent
    return MOVED | (BUSY if sent < header_left + payload_left else IDLE)


@routine
def _receive(comm, rank):
    """Receive what has come of a peer's message, and compare its header once it is here."""
    peer = comm.links.peers[rank]
    filled, wanted = peer.filled, peer.wanted
    if filled == wanted:
        return IDLE
    got = libc.receive(peer.star_fd, peer.inbox.address + filled, wanted - filled)
    if got <= 0:
        return without_bytes(got)
    filled += got
    peer.filled = filled
    if filled >= HEADER_BYTES and peer.agreement == UNREAD:
        if comm.links.idle_since != 0:
            note_arrival(comm, rank)
        if not _is_of_this_step(comm, peer):
            return GARBLED
        if peer.agreement == DISAGREES:  # what follows is read at neither end
            peer.wanted = filled
            peer.payload_left = 0
            return MOVED
    return MOVED | (BUSY if filled < wanted else IDLE)


@routine
def _is_of_this_step(comm, peer):
    """Compare a header with this rank's call; tell whether it is of the protocol at all."""
    header = peer.inbox
    if swap_bytes(header.step) != comm.generation:
        return False
    difference = hear(comm, swap_bytes(header.signature) ^ comm.signature)
    if difference != 0 or swap_bytes(header.length) != comm.length:
        peer.agreement = DISAGREES
        return True
    peer.agreement = AGREES
    return header.first == peer.first_word


@routine
def _agreement(comm, first, end):
    """Return OK, or DISAGREE with all calls in the failure records: row "header differs"."""
    agree = True
    for rank in range(first, end):
        agree = agree and comm.links.peers[rank].agreement != DISAGREES
    if agree:
        if comm.size > PAIR:
            _share_last(comm)
        return OK
    own = comm.failures[comm.rank]
    own.reason = ARRIVED
    own.signature = comm.signature & CALLED
    own.length = comm.length
    own.detail = comm.detail
    for rank in range(first, end):
        failure, header = comm.failures[rank], comm.links.peers[rank].inbox
        failure.reason = ARRIVED
        failure.signature = swap_bytes(header.signature) & CALLED
        failure.length = swap_bytes(header.length)
        failure.detail = swap_bytes(header.detail)
    return DISAGREE


@routine
def _share_last(comm):
    """Let rank 0 tell the others who came last: as the detail of what it sends back."""
    if is_coordinator(comm):
        comm.detail = comm.last if comm.arrived != 0 else comm.rank
    elif comm.arrived != 0:
        last = swap_bytes(comm.links.peers[0].inbox.detail)
        if last == comm.rank:
            comm.arrived = 0
        elif 0 <= last < comm.size:
            comm.last = last
