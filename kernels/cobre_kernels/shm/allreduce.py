"""Allreduce: rank-ordered fold of the ranks' slots.

Three ways to the same bits. Up to INLINE_BYTES: the contributions travel beside the flags. With
few ranks or up to FOLD_ALL_BYTES: every rank folds every slot itself, one step a chunk. Above:
each rank folds its own stripe of a chunk and the others copy the result in the following step, so
a rank reads about two chunks per chunk of payload instead of one for each rank.
"""

from cobre_kernels import layout
from cobre_kernels.arguments import check_allreduce
from cobre_kernels.atomics import peek
from cobre_kernels.copy import move
from cobre_kernels.fold import fold
from cobre_kernels.guard import enter, leave
from cobre_kernels.kernel import address_of, kernel
from cobre_kernels.kind import ALLREDUCE, pack_kind
from cobre_kernels.routine import routine
from cobre_kernels.shm.slot import fill_slot, slot_of
from cobre_kernels.shm.step import (
    await_all,
    finish,
    next_generation,
    payload_of,
    publish,
    stripe_of,
)
from cobre_kernels.status import OK

FOLD_ALL_BYTES = 16384  # above, and with more than FOLD_ALL_RANKS ranks, stripes cost less
FOLD_ALL_RANKS = 3
BLOCK_BYTES = 8192  # the accumulator of a fold stays in the first-level cache


@kernel(arguments=7)
def allreduce_kernel(state, send, send_count, recv, recv_count, itemsize, dtype, op):
    """Fold ``send`` of all ranks into ``recv``; arguments are addresses and numbers of elements."""
    state = address_of(state)
    outcome = enter(state)
    if outcome != OK:
        return outcome
    outcome = check_allreduce(send, send_count, recv, recv_count, itemsize, dtype, op)
    if outcome != OK:
        leave(state)
        return outcome
    kind = pack_kind(ALLREDUCE, dtype, op)
    size_bytes = send_count * itemsize
    if size_bytes <= layout.INLINE_BYTES:
        outcome = _inline(state, send, recv, itemsize, size_bytes, kind, dtype, op)
    elif size_bytes <= FOLD_ALL_BYTES or peek(state + layout.COMM_SIZE) <= FOLD_ALL_RANKS:
        outcome = _everyone_folds(state, send, recv, itemsize, size_bytes, kind, dtype, op)
    else:
        outcome = _stripes(state, send, recv, itemsize, size_bytes, kind, dtype, op)
    return finish(state, outcome, kind)


@routine
def _inline(state, send, recv, itemsize, size_bytes, kind, dtype, op):
    generation = next_generation(state)
    move(payload_of(state, peek(state + layout.RANK), generation), send, size_bytes)
    publish(state, generation, kind, size_bytes, size_bytes // itemsize)
    outcome = await_all(state, generation, kind, size_bytes)
    if outcome == OK:
        own = _own_payload(state, send, recv, generation)
        move(recv, _payload(state, 0, generation, own), size_bytes)
        for rank in range(1, peek(state + layout.COMM_SIZE)):
            theirs = _payload(state, rank, generation, own)
            fold(state, dtype, op, recv, theirs, size_bytes // itemsize)
    return outcome


@routine
def _own_payload(state, send, recv, generation):
    """Address of this rank's contribution: not its cell, which the others are taking away.

    In place it is overwritten before it is folded; then the cell has it.
    """
    if send == recv:
        return payload_of(state, peek(state + layout.RANK), generation)
    return send


@routine
def _payload(state, rank, generation, own):
    return own if rank == peek(state + layout.RANK) else payload_of(state, rank, generation)


@routine
def _bring_in(state, generation, source, length, itemsize, size_bytes, kind):
    """Contribute a chunk and wait for those of the others."""
    fill_slot(state, generation, source, length)
    publish(state, generation, kind, size_bytes, size_bytes // itemsize)
    return await_all(state, generation, kind, size_bytes)


@routine
def _contribution(state, rank, generation, own):
    """Address of a rank's chunk: its slot, but for this rank where it is in the cache already."""
    if rank == peek(state + layout.RANK):
        return own
    return slot_of(state, rank, generation)


@routine
def _fold_slots(state, own, target, begin, end, itemsize, generation, dtype, op):
    """Fold bytes ``begin`` to ``end`` of all chunks, in rank order, into ``target``."""
    while begin < end:
        block = min(end - begin, BLOCK_BYTES)
        move(target, _contribution(state, 0, generation, own) + begin, block)
        for rank in range(1, peek(state + layout.COMM_SIZE)):
            chunk = _contribution(state, rank, generation, own) + begin
            fold(state, dtype, op, target, chunk, block // itemsize)
        begin += block
        target += block


@routine
def _own_chunk(state, send, recv, begin, generation):
    """Address of this rank's chunk; in place it is overwritten before it is folded.

    The only rank of a communicator has no other chunk to fold, and nothing in its slot.
    """
    if send == recv and peek(state + layout.COMM_SIZE) > 1:
        return slot_of(state, peek(state + layout.RANK), generation)
    return send + begin


@routine
def _everyone_folds(state, send, recv, itemsize, size_bytes, kind, dtype, op):
    chunk = peek(state + layout.CHUNK_BYTES)
    for begin in range(0, size_bytes, chunk):
        length = min(chunk, size_bytes - begin)
        generation = next_generation(state)
        outcome = _bring_in(state, generation, send + begin, length, itemsize, size_bytes, kind)
        if outcome != OK:
            return outcome
        own = _own_chunk(state, send, recv, begin, generation)
        _fold_slots(state, own, recv + begin, 0, length, itemsize, generation, dtype, op)
    return OK


@routine
def _stripe_bytes(state, length):
    """Bytes of a stripe of a chunk of ``length`` bytes: whole lines, the last one shorter."""
    size = peek(state + layout.COMM_SIZE)
    lines = -(-length // layout.LINE_BYTES)
    return -(-lines // size) * layout.LINE_BYTES


@routine
def _stripes(state, send, recv, itemsize, size_bytes, kind, dtype, op):
    """Step k brings chunk k in, folds this rank's stripe of it, and takes chunk k - 1 out."""
    chunk = peek(state + layout.CHUNK_BYTES)
    rank = peek(state + layout.RANK)
    begin = 0
    while begin < size_bytes + chunk:
        length = min(chunk, max(size_bytes - begin, 0))
        generation = next_generation(state)
        outcome = _bring_in(state, generation, send + begin, length, itemsize, size_bytes, kind)
        if outcome != OK:
            return outcome
        stripe = _stripe_bytes(state, length)
        _fold_slots(
            state,
            _own_chunk(state, send, recv, begin, generation),
            stripe_of(state, rank, generation),
            min(rank * stripe, length),
            min((rank + 1) * stripe, length),
            itemsize,
            generation,
            dtype,
            op,
        )
        if begin > 0:
            _take_out(
                state, recv + begin - chunk, min(chunk, size_bytes - begin + chunk), generation
            )
        begin += chunk
    return OK


@routine
def _take_out(state, recv, length, generation):
    """Copy the stripes that all ranks folded in the step before this one."""
    stripe = _stripe_bytes(state, length)
    for rank in range(peek(state + layout.COMM_SIZE)):
        begin = min(rank * stripe, length)
        end = min(begin + stripe, length)
        move(recv + begin, stripe_of(state, rank, generation - 1), end - begin)
