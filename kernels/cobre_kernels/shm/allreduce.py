"""Allreduce: rank-ordered fold of the ranks' slots.

Several ways lead to the same bits. Up to INLINE_BYTES, the contributions travel in the cells. If
there are two ranks, from HALVES_BYTES on each of them folds half of each chunk (:func:`_halves`).
Else, with few ranks, or up to FOLD_ALL_BYTES, every rank folds every slot itself, one step a chunk.
Else each rank folds its own stripe of a chunk, and the other ranks copy the result in the following
step. So for a chunk of the payload a rank reads about two chunks, and not a chunk of each rank.

If ``recv`` is one memory for all ranks, each rank folds its stripes into ``recv``, and no rank
copies results (``region.py``). No two ranks may fold into the same bytes of ``recv``.
"""

from cobre_kernels.collective.calls import Allreduce, called, contribution_bytes
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.reduction.fold import FOLD_BLOCK_BYTES, fold
from cobre_kernels.collective.regions import NO_REGION, NOWHERE, OutputMemory
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import FAR_BYTES, copy_far, move
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.record import LINE_BYTES
from cobre_kernels.shm.control import INLINE_BYTES
from cobre_kernels.shm.region import (
    MEETING,
    MIXED,
    location_of,
    meet_in_region,
    receive,
    region_of_sends,
)
from cobre_kernels.shm.slot import PROBE_EVERY, even_chunk, fill, fill_slot, slot_of, stripe_of
from cobre_kernels.shm.step import next_generation, synchronise
from cobre_kernels.shm.wait import cell_of, find_failed

FOLD_ALL_BYTES = 16384  # for more bytes and more than FOLD_ALL_RANKS ranks, stripes cost less
FOLD_ALL_RANKS = 3
HALVES_BYTES = 32768  # for less, the additional step of halves costs more than halves save
HALF_BYTES = 131072  # a second-level cache of 1 MiB holds both halves, with data of send and recv
TURN_BYTES = 1024  # folded at one place at a time; prefetchers run further ahead


@kernel(COMM, Allreduce)
def allreduce_body(comm, call):
    """Fold into the one ``recv`` that all ranks share, or into the ``recv`` of each rank."""
    size_bytes = contribution_bytes(call)
    # What is sent in place is overwritten while others would read it.
    send = call.send if call.send != call.recv else NOWHERE
    output = OutputMemory(call.recv, size_bytes, send, size_bytes)
    return receive(comm, call, output, _into_region, _by_slots)


@routine
def _by_slots(comm, call, outputs):
    """Choose one of the ways.

    In the way by stripes a rank writes only results to ``recv``, so several ranks may have ``recv``
    in common. If there are two ranks, each has an output of its own here: if the outputs were the
    same bytes of a region, both ranks would find the region in their tables, and
    :func:`_into_region` would run.
    """
    size_bytes = contribution_bytes(call)
    if outputs == MEETING and comm.size > 2:
        return _stripes(comm, call)
    if size_bytes <= INLINE_BYTES:
        return _inline(comm, call)
    if comm.size == 2 and size_bytes >= HALVES_BYTES:
        return _halves(comm, call)
    if size_bytes <= FOLD_ALL_BYTES or comm.size <= FOLD_ALL_RANKS:
        return _every_rank_folds(comm, call)
    return _stripes(comm, call)


@routine
def _inline(comm, call):
    generation, size_bytes = next_generation(comm), contribution_bytes(call)
    own = cell_of(comm, comm.rank, generation).payload
    move(own, call.send, size_bytes)
    outcome = synchronise(comm, called(comm))
    if outcome == OK:
        # Peers read this rank's cell, so this rank reads its send, unless recv overwrites send.
        own = own if call.send == call.recv else call.send
        move(call.recv, _payload(comm, 0, generation, own), size_bytes)
        for rank in range(1, comm.size):
            fold(comm, call, call.recv, _payload(comm, rank, generation, own), size_bytes)
    return outcome


@routine
def _payload(comm, rank, generation, own):
    return own if rank == comm.rank else cell_of(comm, rank, generation).payload


@routine
def _every_rank_folds(comm, call):
    chunk, size_bytes = comm.node.chunk_bytes, contribution_bytes(call)
    begin = 0
    while begin < size_bytes:
        length = min(chunk, size_bytes - begin)
        outcome = _contribute(comm, call.send + begin, length)
        if outcome != OK:
            return outcome
        own = _own_chunk(comm, call, begin, length)
        _fold_slots(comm, call, own, call.recv + begin, (0, length))
        begin += chunk
    return OK


@routine
def _halves(comm, call):
    """Go through steps: step k brings chunk k, folds half of it in place, takes chunk k - 1 out.

    Each of two ranks writes to its memory the half that the other rank folds. The other rank folds
    that half where it is, and the writer takes the result from there. So each rank writes and folds
    only half a chunk, and the lines of a half cross to the other cache and back.
    """
    size_bytes, other = contribution_bytes(call), 1 - comm.rank
    chunk = even_chunk(size_bytes, 2 * min(HALF_BYTES, comm.node.chunk_bytes))
    begin = 0
    while begin < size_bytes + chunk:
        generation, length = next_generation(comm), min(chunk, max(size_bytes - begin, 0))
        first, end = _stripe(comm, other, length)
        source, probes = call.send + begin + first, generation % PROBE_EVERY == 0
        written = _half_of(comm, comm.rank, generation)
        fill(comm.node.slot_fills, written, source, end - first, probes)
        outcome = synchronise(comm, called(comm))
        if outcome != OK:
            return outcome
        first, end = _stripe(comm, comm.rank, length)
        at, half = begin + first, _half_of(comm, other, generation)
        places = (call.send + at, call.recv + at, half)
        _in_turn(comm, call, places, end - first, _fold_half)
        if begin > 0:
            last = begin - chunk
            first, end = _stripe(comm, other, min(chunk, size_bytes - last))
            target = call.recv + last + first
            copy_far(target, _half_of(comm, comm.rank, generation - 1), end - first, False)
        begin += chunk
    return OK


@routine
def _half_of(comm, rank, generation):
    """Return where a rank writes a half: behind its first slot, which the next call may fill."""
    chunk, buffer = comm.node.chunk_bytes, comm.node.buffers + rank * comm.node.buffer_stride
    return buffer + chunk + (generation & 1) * chunk


@routine
def _fold_half(comm, call, places, at, length):
    """Fold a block of this rank's half into ``recv``, and into the other rank's memory."""
    own, target, half = places[0] + at, places[1] + at, places[2] + at
    if comm.rank == 0:
        move(target, own, length)
        fold(comm, call, target, half, length)
        move(half, target, length)
    else:
        fold(comm, call, half, own, length)
        move(target, half, length)


@routine
def _stripes(comm, call):
    """Go through steps: step k brings chunk k in, folds a stripe of it, takes chunk k - 1 out."""
    chunk, size_bytes = comm.node.chunk_bytes, contribution_bytes(call)
    begin = 0
    while begin < size_bytes + chunk:
        length = min(chunk, max(size_bytes - begin, 0))
        outcome = _contribute(comm, call.send + begin, length)
        if outcome != OK:
            return outcome
        own, generation = _own_chunk(comm, call, begin, length), comm.node.generation
        target = stripe_of(comm, comm.rank, generation)
        _fold_slots(comm, call, own, target, _stripe(comm, comm.rank, length))
        if begin > 0:
            last = begin - chunk
            _take_out(comm, generation - 1, call.recv + last, min(chunk, size_bytes - last))
        begin += chunk
    return OK


@routine
def _contribute(comm, source, length):
    """Put this rank's chunk into its slot, and wait for the chunks of the other ranks."""
    fill_slot(comm, next_generation(comm), source, length)
    return synchronise(comm, called(comm))


@routine
def _own_chunk(comm, call, begin, length):
    """Return an address from which this rank can fold its own chunk.

    If ``send`` is ``recv``, the chunk there is overwritten before it is folded. With three ranks or
    more, the chunk is also in the rank's slot. With two ranks, a rank may fill the slot of the
    other as soon as it is done with this step. So each of the two copies its chunk to its stripe,
    which two ranks do not use otherwise. A single rank has no other chunk to fold.
    """
    if call.send != call.recv or comm.size == 1:
        return call.send + begin
    if comm.size > 2:
        return slot_of(comm, comm.rank, comm.node.generation)
    copy = stripe_of(comm, comm.rank, 0)
    move(copy, call.send + begin, length)
    return copy


@routine
def _fold_slots(comm, call, own, target, span):
    """Fold the bytes of all chunks in a span, in rank order, into ``target``."""
    begin, length = span[0], span[1] - span[0]
    _in_turn(comm, call, (own + begin, target, begin), length, _fold_block)


@routine
def _in_turn(comm, call, places, length, fold_block):
    """Fold block by block; large chunks at three distant places in turn.

    While the core folds a block of one place, its prefetchers fetch the next blocks of the two
    other places from other ranks' caches.
    """
    third = length // (3 * TURN_BYTES) * TURN_BYTES if length >= FAR_BYTES else 0
    for at in range(0, third, TURN_BYTES):
        for turn in range(3):
            fold_block(comm, call, places, at + turn * third, TURN_BYTES)
    for at in range(3 * third, length, FOLD_BLOCK_BYTES):
        fold_block(comm, call, places, at, min(length - at, FOLD_BLOCK_BYTES))


@routine
def _fold_block(comm, call, places, at, length):
    own, target, begin = places
    for rank in range(comm.size):
        source = own if rank == comm.rank else slot_of(comm, rank, comm.node.generation) + begin
        if rank == 0:
            move(target + at, source + at, length)
        else:
            fold(comm, call, target + at, source + at, length)


@routine
def _stripe(comm, rank, length):
    """Return where a rank's stripe of a chunk begins and ends; all but the last are whole lines."""
    lines = -(-length // LINE_BYTES)
    stripe = -(-lines // comm.size) * LINE_BYTES
    return min(rank * stripe, length), min((rank + 1) * stripe, length)


@routine
def _take_out(comm, generation, target, length):
    """Copy the stripes that all ranks folded in an earlier step."""
    for rank in range(comm.size):
        begin, end = _stripe(comm, rank, length)
        move(target + begin, stripe_of(comm, rank, generation), end - begin)


@routine
def _into_region(comm, call):
    """Fold stripes into the one ``recv`` that all ranks share, from each ``send`` or from slots."""
    chunk, size_bytes = comm.node.chunk_bytes, contribution_bytes(call)
    if comm.location.send_region == NO_REGION:
        fill_slot(comm, next_generation(comm), call.send, min(chunk, size_bytes))
    outcome = meet_in_region(comm)
    if outcome != OK:
        return outcome
    region = region_of_sends(comm)
    if region > NO_REGION:
        _fold_sends(comm, call)
        outcome = find_failed(comm)
        return outcome if outcome != OK else synchronise(comm, called(comm))
    begin = 0
    while begin < size_bytes:
        length = min(chunk, size_bytes - begin)
        if begin > 0 or region == MIXED:
            outcome = _contribute(comm, call.send + begin, length)
            if outcome != OK:
                return outcome
        own = _own_chunk(comm, call, begin, length)
        span = _stripe(comm, comm.rank, length)
        _fold_slots(comm, call, own, call.recv + begin + span[0], span)
        begin += chunk
    return synchronise(comm, called(comm))


@routine
def _fold_sends(comm, call):
    """Fold this rank's stripe into ``recv``, from data that all ranks send from the same region."""
    begin, end = _stripe(comm, comm.rank, contribution_bytes(call))
    region = call.send - comm.location.send_offset
    while begin < end:
        block = min(end - begin, FOLD_BLOCK_BYTES)
        target = call.recv + begin
        for rank in range(comm.size):
            source = region + location_of(comm, rank).send_offset + begin
            if rank == 0:
                move(target, source, block)
            else:
                fold(comm, call, target, source, block)
        begin += block
