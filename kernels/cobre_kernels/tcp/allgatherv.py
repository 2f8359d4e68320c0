"""Allgatherv: through rank 0 if all blocks together are small, else around the ring."""

from cobre_kernels import layout, libc
from cobre_kernels.arguments import check_allgatherv, hash_tables
from cobre_kernels.collective.guard import enter, leave
from cobre_kernels.collective.status import OK
from cobre_kernels.kind import ALLGATHERV, pack_kind
from cobre_kernels.machine.atomics import peek
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import address_of, kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp import table
from cobre_kernels.tcp.ring import relay, set_block
from cobre_kernels.tcp.shared import transfer
from cobre_kernels.tcp.star import PAIR, agree, ask, exchange, finish, fits_star, reply
from cobre_kernels.tcp.table import is_hub, links_of
from cobre_kernels.tcp.tags import ALLGATHERV_RECV, ALLGATHERV_SEND
from cobre_kernels.tcp.transfer import body_from, expect
from cobre_kernels.tcp.wait import begin_step


@kernel(arguments=10)
def allgatherv_kernel(
    state,
    send,
    send_count,
    recv,
    recv_count,
    itemsize,
    dtype,
    counts,
    displs,
    counts_len,
    displs_len,
):
    """Gather blocks of different lengths; arguments are addresses and numbers of elements."""
    state = address_of(state)
    outcome = enter(state)
    if outcome != OK:
        return outcome
    outcome = check_allgatherv(
        state, send, send_count, recv, recv_count, itemsize, counts, displs, counts_len, displs_len
    )
    if outcome != OK:
        leave(state)
        return outcome
    kind = pack_kind(ALLGATHERV, dtype, 0)
    size, rank = peek(state + layout.COMM_SIZE), peek(state + layout.RANK)
    thread = libc.release_gil()
    begin_step(state, kind, hash_tables(size, itemsize, counts, displs), send_count)
    own_block = recv + peek(displs + 8 * rank) * itemsize
    if own_block != send and send_count > 0:
        move(own_block, send, send_count * itemsize)
    total = 0
    for r in range(size):
        count = peek(counts + 8 * r) * itemsize
        set_block(state, r, recv + peek(displs + 8 * r) * itemsize, count)
        total += count
    if size > 1 and not fits_star(state, total):
        outcome = agree(state, ALLGATHERV_SEND, ALLGATHERV_RECV)
        if outcome == OK:
            outcome = relay(state, ALLGATHERV_RECV)
    elif size > 1:
        outcome = _through(state, own_block, send_count * itemsize, total)
    outcome = finish(state, outcome, kind)
    libc.regain_gil(thread)
    return outcome


@routine
def _block(state, rank):
    """Address and bytes of a rank's block, as set for the ring."""
    place = peek(links_of(state) + table.BLOCKS) + 16 * rank
    return peek(place), peek(place + 8)


@routine
def _through(state, own_block, own_bytes, total):
    """Over the star."""
    if peek(state + layout.COMM_SIZE) == PAIR:
        other = 1 - peek(state + layout.RANK)
        expected = total - own_bytes
        outcome = exchange(state, ALLGATHERV_SEND, 0, own_block, own_bytes, expected)
        if outcome == OK and expected > 0:
            move(_block(state, other)[0], body_from(state, other), expected)
        return outcome
    if is_hub(state):
        return _gather(state, total)
    outcome = ask(state, ALLGATHERV_SEND, 0, own_block, own_bytes, ALLGATHERV_RECV, total)
    if outcome == OK:
        _unpack(state, body_from(state, 0))
    return outcome


@routine
def _unpack(state, packed):
    """Put the blocks, which come one after the other in rank order, into their places."""
    for rank in range(peek(state + layout.COMM_SIZE)):
        place, count = _block(state, rank)
        if count > 0 and rank != peek(state + layout.RANK):
            move(place, packed, count)
        packed += count


@routine
def _gather(state, total):
    """As rank 0, receive all blocks and send them, packed, to all."""
    size = peek(state + layout.COMM_SIZE)
    for rank in range(1, size):
        expect(state, rank, ALLGATHERV_SEND, 0, _block(state, rank)[1])
    outcome = transfer(state)
    if outcome != OK:
        return outcome
    outbox = peek(links_of(state) + table.OUTBOX)
    end = outbox
    for rank in range(size):
        place, count = _block(state, rank)
        if count > 0:
            if rank > 0:
                move(place, body_from(state, rank), count)
            move(end, place, count)
        end += count
    return reply(state, ALLGATHERV_RECV, 0, outbox, total)
