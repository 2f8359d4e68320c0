"""The star: every rank's call, and a small payload, goes to rank 0 and comes back as the result.

Two hops, for any number of ranks. Two ranks need only one, because each can send its own to
the other at once. Every collective begins here, also one whose payload then takes the ring: the
headers tell whether all ranks have called the same.

Every collective has two tags: of what goes to rank 0, and of what comes back.
"""

from cobre_kernels.collective.status import OK
from cobre_kernels.machine.kernel import run_alone
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp import tags
from cobre_kernels.tcp.frame import HEADER_BYTES, first_word, write_header
from cobre_kernels.tcp.links import UNREAD, is_coordinator

PAIR = 2  # ranks that need no centre

BARRIER_TAGS = (tags.BARRIER_READY, tags.BARRIER_GO)
BROADCAST_TAGS = (tags.BROADCAST, tags.BROADCAST)
ALLREDUCE_TAGS = (tags.ALLREDUCE_SEND, tags.ALLREDUCE_RECV)
ALLGATHERV_TAGS = (tags.ALLGATHERV_SEND, tags.ALLGATHERV_RECV)


@routine
def fits_star(comm, size_bytes):
    """Tell whether a payload of so many bytes in all goes through rank 0."""
    return size_bytes <= comm.links.star_bytes


@routine
def has_partner(comm):
    """Tell whether this rank exchanges messages with one other only; else it hears all."""
    return comm.size == PAIR or not is_coordinator(comm)


@routine
def partner_of(comm):
    """Return the other end of this rank's only star link."""
    return 1 if is_coordinator(comm) else 0


@routine
def post_send(comm, rank, tag, payload, size_bytes):
    """Set up a message to a rank: this rank's call and a payload."""
    peer = comm.links.peers[rank]
    write_header(comm, peer.header, tag, size_bytes)
    peer.header_left = HEADER_BYTES
    peer.payload = payload
    peer.payload_left = size_bytes


@routine
def post_recv(comm, rank, tag, size_bytes):
    """Set up the receipt of a message from a rank, with so many bytes of payload."""
    peer = comm.links.peers[rank]
    peer.first_word = first_word(comm, tag, size_bytes)
    peer.filled = 0
    peer.wanted = HEADER_BYTES + size_bytes
    peer.agreement = UNREAD


@routine
def transfer(comm):
    """Move what is posted (``progress/transfer.py``, compiled once); return a status."""
    return run_alone(comm.links.transfer, comm)


@routine
def payload_from(comm, rank):
    """Return the address of the payload that has come from a rank."""
    return comm.links.peers[rank].inbox.address + HEADER_BYTES


@routine
def exchange(comm, both_tags, payload, size_bytes, recv_bytes):
    """Send to this rank's partner and receive from it at the same time; return a status."""
    partner = partner_of(comm)
    tag, reply_tag = both_tags
    post_recv(comm, partner, tag if comm.size == PAIR else reply_tag, recv_bytes)
    post_send(comm, partner, tag, payload, size_bytes)
    return transfer(comm)


@routine
def send_to_all(comm, tag, payload, size_bytes):
    """As rank 0, send the same to every other rank; return a status."""
    for rank in range(1, comm.size):
        post_send(comm, rank, tag, payload, size_bytes)
    return transfer(comm)


@routine
def agree(comm, both_tags):
    """Find that all ranks have called the same, without data; return a status."""
    if has_partner(comm):
        return exchange(comm, both_tags, 0, 0, 0)
    tag, reply_tag = both_tags
    for rank in range(1, comm.size):
        post_recv(comm, rank, tag, 0)
    outcome = transfer(comm)
    return send_to_all(comm, reply_tag, 0, 0) if outcome == OK else outcome
