"""Allgatherv: every rank's chunk goes through its slot, one step a chunk, two chunks in flight.

A byte is copied twice: into the slot by its owner, out of it by each reader. Chunks are small
enough to be read from the owner's cache.
"""

from cobre_kernels import layout
from cobre_kernels.arguments import check_allgatherv, hash_tables, largest_count
from cobre_kernels.atomics import peek
from cobre_kernels.copy import is_large, move, move_out, settle
from cobre_kernels.guard import enter, leave
from cobre_kernels.kernel import address_of, kernel
from cobre_kernels.kind import ALLGATHERV, pack_kind
from cobre_kernels.routine import routine
from cobre_kernels.shm.slot import fill_slot, slot_of
from cobre_kernels.shm.step import (
    await_rank,
    finish,
    next_generation,
    payload_of,
    publish,
)
from cobre_kernels.status import DISAGREE, OK


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
    size = peek(state + layout.COMM_SIZE)
    outcome = check_allgatherv(
        state, send, send_count, recv, recv_count, itemsize, counts, displs, counts_len, displs_len
    )
    if outcome != OK:
        leave(state)
        return outcome
    kind = pack_kind(ALLGATHERV, dtype, 0)
    tables = hash_tables(size, itemsize, counts, displs)
    largest_bytes = largest_count(size, counts) * itemsize
    is_inline = largest_bytes <= layout.INLINE_BYTES
    past_caches = is_large(recv_count * itemsize)
    chunk = peek(state + layout.CHUNK_BYTES)
    begin = 0
    while True:
        outcome = _chunk(
            state,
            send,
            recv,
            itemsize,
            counts,
            displs,
            begin,
            chunk,
            is_inline,
            past_caches,
            kind,
            tables,
        )
        begin += chunk
        if outcome != OK or begin >= largest_bytes:
            if past_caches:
                settle()
            return finish(state, outcome, kind)


@routine
def _chunk(
    state, send, recv, itemsize, counts, displs, begin, chunk, is_inline, past_caches, kind, tables
):
    """Move bytes ``begin`` to ``begin + chunk`` of every block that reaches so far."""
    generation = next_generation(state)
    size = peek(state + layout.COMM_SIZE)
    rank = peek(state + layout.RANK)
    own_bytes = min(peek(counts + 8 * rank) * itemsize - begin, chunk)
    own_block = recv + peek(displs + 8 * rank) * itemsize
    if own_bytes > 0 and is_inline:
        move(payload_of(state, rank, generation), send, own_bytes)
    elif own_bytes > 0:
        fill_slot(state, generation, send + begin, own_bytes)
    publish(state, generation, kind, tables, peek(counts + 8 * rank))
    if own_bytes > 0 and own_block != send:
        move_out(own_block + begin, send + begin, own_bytes, past_caches)
    worst = OK
    for _ in range(size - 1):
        rank += 1
        if rank == size:
            rank = 0
        outcome = await_rank(state, rank, generation, kind, tables)
        if outcome == DISAGREE:
            worst = DISAGREE
        elif outcome != OK:
            return outcome
        theirs = min(peek(counts + 8 * rank) * itemsize - begin, chunk)
        if theirs > 0 and worst == OK:
            place = recv + peek(displs + 8 * rank) * itemsize + begin
            if is_inline:
                move(place, payload_of(state, rank, generation), theirs)
            else:
                move_out(place, slot_of(state, rank, generation), theirs, past_caches)
    return worst
