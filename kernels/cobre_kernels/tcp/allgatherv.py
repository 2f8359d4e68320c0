"""Allgatherv: through rank 0 if all blocks together are small, else around the ring."""

from cobre_kernels.collective.calls import Allgatherv
from cobre_kernels.collective.checks import block_of, bytes_of
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp.links import is_coordinator
from cobre_kernels.tcp.progress.pause import begin_step
from cobre_kernels.tcp.ring import relay, set_block
from cobre_kernels.tcp.star import (
    ALLGATHERV_TAGS,
    PAIR,
    agree,
    exchange,
    fits_star,
    partner_of,
    payload_from,
    post_recv,
    send_to_all,
    transfer,
)
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
    if not fits_star(comm, total):
        return _around_ring(comm, call)
    if comm.size == PAIR:
        return _as_pair(comm, call, total - own_bytes)
    if is_coordinator(comm):
        return _as_coordinator(comm, call, total)
    outcome = exchange(comm, ALLGATHERV_TAGS, own_block, own_bytes, total)
    if outcome == OK:
        _unpack(comm, call)
    return outcome


@routine
def _around_ring(comm, call):
    outcome = agree(comm, ALLGATHERV_TAGS)
    if outcome != OK:
        return outcome
    for rank in range(comm.size):
        set_block(comm, rank, block_of(call, rank), bytes_of(call, rank))
    return relay(comm, ALLGATHERV_RECV)


@routine
def _as_pair(comm, call, recv_bytes):
    """Exchange blocks with the only other rank."""
    own_block, own_bytes = block_of(call, comm.rank), bytes_of(call, comm.rank)
    outcome = exchange(comm, ALLGATHERV_TAGS, own_block, own_bytes, recv_bytes)
    if outcome == OK and recv_bytes > 0:
        partner = partner_of(comm)
        move(block_of(call, partner), payload_from(comm, partner), recv_bytes)
    return outcome


@routine
def _unpack(comm, call):
    """Take the blocks, which come one after the other in rank order, to where they belong."""
    packed = payload_from(comm, 0)
    for rank in range(comm.size):
        count = bytes_of(call, rank)
        if count > 0 and rank != comm.rank:
            move(block_of(call, rank), packed, count)
        packed += count


@routine
def _as_coordinator(comm, call, total):
    """Receive all blocks and send them, packed, to all."""
    for rank in range(1, comm.size):
        post_recv(comm, rank, ALLGATHERV_SEND, bytes_of(call, rank))
    outcome = transfer(comm)
    if outcome != OK:
        return outcome
    end = comm.links.outbox
    for rank in range(comm.size):
        block, count = block_of(call, rank), bytes_of(call, rank)
        if count > 0:
            if rank > 0:
                move(block, payload_from(comm, rank), count)
            move(end, block, count)
        end += count
    return send_to_all(comm, ALLGATHERV_RECV, comm.links.outbox, total)
