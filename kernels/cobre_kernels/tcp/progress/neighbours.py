"""Progress steps on the ring: frames of bulk data to the next leader, and from the previous one.

Ring and chain differ in the order of their frames. This file has what both need: how a frame moves,
and how a progress step ends.
"""

from typing import NamedTuple

from cobre_kernels.collective import comm as states
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.kernel import kernel, run
from cobre_kernels.nodes.waiting import note_progress
from cobre_kernels.tcp.links import NOBODY, next_node, previous_node
from cobre_kernels.tcp.progress.control import failure_of_link
from cobre_kernels.tcp.progress.sockets import (
    GARBLED,
    MORE,
    MOVED,
    NO_MORE,
    receive_data,
    send_two,
    without_bytes,
)
from cobre_kernels.tcp.progress.waiting import pause
from cobre_kernels.tcp.tags import PREFIX_BYTES


class Moved(NamedTuple):
    """The results of a progress step: of sending to the next leader, and of receiving."""

    sent: int
    received: int


@kernel(COMM, Moved)
def advance_kernel(comm, call):
    """End a progress step: continue at once if bytes have moved, else wait; return a status."""
    links, sent, received = comm.links, call.sent, call.received
    links.awaited_out = next_node(comm) if sent & MORE else NOBODY
    links.awaited_in = previous_node(comm) if received & MORE else NOBODY
    if sent < 0:
        return failure_of_link(comm, next_node(comm), states.DIED)
    if received < 0:
        reason = states.GARBLED if received == GARBLED else states.DIED
        return failure_of_link(comm, previous_node(comm), reason)
    if (sent | received) & MOVED:
        note_progress(comm)
    elif (sent | received) & MORE:
        return pause(comm)
    return OK


@routine
def advance(comm, sent, received):
    """Run :func:`advance_kernel`, a kernel of its own, so that it is compiled once."""
    return run(comm.links.advance, comm, Moved(sent, received))


@routine
def send_frame(comm, payload, count):
    """Send the rest of the prefix, and payload; return the bytes of payload sent, or -errno."""
    links, cursor = comm.links, comm.links.outgoing
    left = cursor.prefix_left
    prefix = cursor.prefix + PREFIX_BYTES - left
    sent = send_two(comm, links.next.data_fd, prefix, left, payload, count)
    if sent < 0:
        links.wants_out = 1
        return sent
    prefix_sent = min(sent, left)
    cursor.prefix_left = left - prefix_sent
    cursor.frame_left -= sent - prefix_sent
    return sent - prefix_sent


@routine
def receive_prefix(comm):
    """Receive the prefix of a frame; return NO_MORE when all of its bytes have arrived."""
    cursor = comm.links.incoming
    left = cursor.prefix_left
    if left == 0:
        left = PREFIX_BYTES
    got = receive_data(comm.links.previous, cursor.prefix + PREFIX_BYTES - left, left)
    if got <= 0:
        cursor.prefix_left = left
        return without_bytes(got)
    cursor.prefix_left = left - got
    return NO_MORE if got == left else MOVED | MORE
