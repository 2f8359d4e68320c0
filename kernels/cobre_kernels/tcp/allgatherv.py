"""Allgatherv: through rank 0 if all blocks together are small, else around the ring."""

from cobre_kernels.collective.calls import Allgatherv
from cobre_kernels.collective.checks import block_of, bytes_of
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp import star
from cobre_kernels.tcp.progress.pause import begin_step
from cobre_kernels.tcp.ring import relay, set_block
from cobre_kernels.tcp.tags import ALLGATHERV_RECV, ALLGATHERV_SEND


@kernel(COMM, Allgatherv)
def allgatherv_body(comm, call):
    """Choose the way by the number of bytes and of ranks."""
    begin_step(comm)
    own_block, own_bytes = block_of(call, comm.rank), bytes_of(call, comm.rank)
    if own_block != call.send and own_bytes > 0:
        move(own_block, call.send, own_bytes)
    total = 0
    for rank in range(comm.size):
        total += bytes_of(call, rank)
    if not star.fits_star(comm, total):
        return _around_ring(comm, call)
    if not star.has_partner(comm):
        return _as_coordinator(comm, call, total)
    recv_bytes = total - own_bytes if comm.size == star.PAIR else total
    outcome = star.exchange(comm, star.ALLGATHERV_TAGS, own_block, own_bytes, recv_bytes)
    if outcome == OK:
        _unpack(comm, call)
    return outcome


@routine
def _around_ring(comm, call):
    outcome = star.agree(comm, star.ALLGATHERV_TAGS)
    if outcome != OK:
        return outcome
    for rank in range(comm.size):
        set_block(comm, rank, block_of(call, rank), bytes_of(call, rank))
    return relay(comm, ALLGATHERV_RECV)


@routine
def _unpack(comm, call):
    """Take the blocks, which come one after the other in rank order, to where they belong."""
    packed = star.payload_from(comm, star.partner_of(comm))
    for rank in range(comm.size):
        count = bytes_of(call, rank)
        if count > 0 and rank != comm.rank:
            move(block_of(call, rank), packed, count)
        if rank != comm.rank or comm.size > star.PAIR:  # of two ranks each sends its own alone
            packed += count


@routine
def _as_coordinator(comm, call, total):
    """Receive all blocks and send them, packed, to all."""
    for rank in range(1, comm.size):
        star.post_recv(comm, rank, ALLGATHERV_SEND, bytes_of(call, rank))
    outcome = star.transfer(comm)
    if outcome != OK:
        return outcome
    end = comm.links.outbox
    for rank in range(comm.size):
        block, count = block_of(call, rank), bytes_of(call, rank)
        if count > 0:
            if rank > 0:
                move(block, star.payload_from(comm, rank), count)
            move(end, block, count)
        end += count
    return star.send_to_all(comm, ALLGATHERV_RECV, comm.links.outbox, total)
