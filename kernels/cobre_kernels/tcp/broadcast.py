"""Broadcast: through rank 0 if the payload is small, else along the ring from the root."""

from cobre_kernels.collective.calls import Broadcast
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp import star
from cobre_kernels.tcp.progress.pause import begin_step
from cobre_kernels.tcp.ring import relay, set_block
from cobre_kernels.tcp.tags import BROADCAST


@kernel(COMM, Broadcast)
def broadcast_body(comm, call):
    """Choose the way by the number of bytes."""
    begin_step(comm)
    if not star.fits_star(comm, call.size_bytes):
        return _around_ring(comm, call)
    return _with_partner(comm, call) if star.has_partner(comm) else _as_coordinator(comm, call)


@routine
def _around_ring(comm, call):
    outcome = star.agree(comm, star.BROADCAST_TAGS)
    if outcome != OK:
        return outcome
    for rank in range(comm.size):
        set_block(comm, rank, call.buffer, _bytes_of(call, rank))
    return relay(comm, BROADCAST)


@routine
def _bytes_of(call, rank):
    """Return how many bytes a rank contributes."""
    return call.size_bytes if rank == call.root else 0


@routine
def _with_partner(comm, call):
    """Send to the other end of the star link, or receive from it."""
    own_bytes = _bytes_of(call, comm.rank)
    recv_bytes = call.size_bytes - own_bytes
    outcome = star.exchange(comm, star.BROADCAST_TAGS, call.buffer, own_bytes, recv_bytes)
    if outcome == OK and recv_bytes > 0:
        move(call.buffer, star.payload_from(comm, star.partner_of(comm)), recv_bytes)
    return outcome


@routine
def _as_coordinator(comm, call):
    """Hear all ranks, and send the root's payload to the others."""
    for rank in range(1, comm.size):
        star.post_recv(comm, rank, BROADCAST, _bytes_of(call, rank))
    outcome = star.transfer(comm)
    if outcome != OK:
        return outcome
    if call.root != 0 and call.size_bytes > 0:
        move(call.buffer, star.payload_from(comm, call.root), call.size_bytes)
    for rank in range(1, comm.size):
        star.post_send(comm, rank, BROADCAST, call.buffer, call.size_bytes - _bytes_of(call, rank))
    return star.transfer(comm)
