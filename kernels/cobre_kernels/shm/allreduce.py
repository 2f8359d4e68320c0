"""Allreduce: rank-ordered fold of the ranks' slots.

Three ways lead to the same bits. Up to INLINE_BYTES, the contributions travel in the cells. With
few ranks, or up to FOLD_ALL_BYTES, every rank folds every slot itself, one step a chunk. Else each
rank folds its own stripe of a chunk, and the other ranks copy the result in the following step. So
for a chunk of the payload a rank reads about two chunks, and not a chunk of each rank. In a large
call each rank may instead read its stripe of every ``send`` where it is, and then the result's other
stripes (``reading.py``); ``ways.py`` chooses.

If ``recv`` is one memory for all ranks, each rank folds its stripes into ``recv``, and no rank
copies results (``region.py``). No two ranks may fold into the same bytes of ``recv``.
"""

from cobre_kernels.collective.calls import ALLREDUCE, Allreduce, called, contribution_bytes
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.reduction.fold import FOLD_BLOCK_BYTES, fold
from cobre_kernels.collective.regions import NO_REGION, NOWHERE, OutputMemory
from cobre_kernels.collective.status import OK, USE_SLOTS
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import FAR_BYTES, move
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.record import LINE_BYTES
from cobre_kernels.shm.control import INLINE_BYTES
from cobre_kernels.shm.reading import end_reading, read_array, show_array, shown_by
from cobre_kernels.shm.region import (
    MEETING,
    MIXED,
    PRIVATE,
    location_of,
    meet_in_region,
    receive,
    region_of_sends,
)
from cobre_kernels.shm.slot import fill_slot, slot_of, stripe_of
from cobre_kernels.shm.step import next_generation, synchronise
from cobre_kernels.shm.wait import cell_of
from cobre_kernels.shm.ways import (
    SLOTS,
    choose_way,
    end_way,
    give_up_trials,
    learn_times,
    show_times,
)

FOLD_ALL_BYTES = 16384  # for more bytes and more than FOLD_ALL_RANKS ranks, stripes cost less
FOLD_ALL_RANKS = 3
READ_BYTES = 65536  # of another rank's array at a time, which a second-level cache holds twice
TURN_BYTES = 1024  # less than prefetchers run ahead


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

    By stripes a rank writes only results to ``recv``, so several ranks may have ``recv`` in common.
    If there are two ranks, each has an output of its own here: if both had the same bytes of a
    region, both would find the region in their tables, and :func:`_into_region` would run.
    """
    size_bytes = contribution_bytes(call)
    if outputs == MEETING and comm.size > 2:
        return _stripes(comm, call)
    if size_bytes <= INLINE_BYTES:
        return _inline(comm, call)
    if choose_way(comm, ALLREDUCE, size_bytes, outputs == PRIVATE) == SLOTS:
        return end_way(comm, _through_slots(comm, call))
    return end_way(comm, _from_arrays(comm, call))


@routine
def _through_slots(comm, call):
    size_bytes = contribution_bytes(call)
    if size_bytes <= FOLD_ALL_BYTES or comm.size <= FOLD_ALL_RANKS:
        return _every_rank_folds(comm, call)
    return _stripes(comm, call)


@routine
def _from_arrays(comm, call):
    """Read and fold this rank's stripe of every ``send``, then read the other stripes' results.

    Return USE_SLOTS if a rank cannot reach an array, sends in place, or has its output in a region.
    """
    size_bytes, generation = contribution_bytes(call), next_generation(comm)
    show_array(comm, generation, call.send if call.send != call.recv else NOWHERE, 1)
    outcome = synchronise(comm, called(comm))
    if outcome != OK:
        return outcome
    for rank in range(comm.size):
        if shown_by(comm, rank, generation).array == NOWHERE:
            give_up_trials(comm)
            return USE_SLOTS
    learn_times(comm, generation)
    outcome = end_reading(comm, call.recv, _read_and_fold(comm, call, generation))
    if outcome != OK:
        return outcome
    could, rank = 1, comm.rank
    for _ in range(comm.size - 1):
        rank = rank + 1 if rank + 1 < comm.size else 0
        begin, end = _stripe(comm, rank, size_bytes)
        target = call.recv + begin
        could &= read_array(comm, rank, generation + 1, begin, target, end - begin)
    return end_reading(comm, NOWHERE, could)


@routine
def _read_and_fold(comm, call, generation):
    """Fold this rank's stripe of all sends into ``recv``; return 1, or 0 if one is denied."""
    begin, end = _stripe(comm, comm.rank, contribution_bytes(call))
    room, could = stripe_of(comm, comm.rank, 0), 1
    while begin < end and could:
        length = min(end - begin, READ_BYTES)
        target = call.recv + begin
        for rank in range(comm.size):
            source = call.send + begin
            if rank != comm.rank:
                source = target if rank == 0 else room
                could &= read_array(comm, rank, generation, begin, source, length)
            if rank > 0:
                fold(comm, call, target, source, length)
            elif source != target:
                move(target, source, length)
        begin += length
    return could


@routine
def _inline(comm, call):
    generation, size_bytes = next_generation(comm), contribution_bytes(call)
    own = cell_of(comm, comm.rank, generation).payload
    move(own, call.send, size_bytes)
    outcome = synchronise(comm, called(comm))
    if outcome == OK:
        # This rank reads its send, because peers read its cell. In place send is overwritten.
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
        outcome = _contribute(comm, call.send, begin, length)
        if outcome != OK:
            return outcome
        own = _own_chunk(comm, call, begin, length)
        _fold_slots(comm, call, own, call.recv + begin, (0, length))
        begin += chunk
    return OK


@routine
def _stripes(comm, call):
    """Go through steps: step k brings chunk k in, folds a stripe of it, takes chunk k - 1 out."""
    chunk, size_bytes = comm.node.chunk_bytes, contribution_bytes(call)
    begin = 0
    while begin < size_bytes + chunk:
        length = min(chunk, max(size_bytes - begin, 0))
        outcome = _contribute(comm, call.send, begin, length)
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
def _contribute(comm, send, begin, length):
    """Put this rank's chunk into its slot, and wait for the chunks of the other ranks."""
    generation = next_generation(comm)
    fill_slot(comm, generation, send + begin, length)
    if begin == 0:
        show_times(comm, generation)
    outcome = synchronise(comm, called(comm))
    if begin == 0 and outcome == OK:
        learn_times(comm, generation)
    return outcome


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
def _chunk_of(comm, rank, own):
    """Return the address of a rank's chunk: its slot, or ``own`` for this rank itself."""
    return own if rank == comm.rank else slot_of(comm, rank, comm.node.generation)


@routine
def _fold_slots(comm, call, own, target, span):
    """Fold the bytes of all chunks in a span, in rank order, into ``target``.

    Large chunks are folded block by block, at three distant places in turn. While the core folds a
    block of one place, its prefetchers fetch the next blocks of the two other places from other
    ranks' caches.
    """
    begin, length = span[0], span[1] - span[0]
    third = length // (3 * TURN_BYTES) * TURN_BYTES if length >= FAR_BYTES else 0
    for at in range(0, third, TURN_BYTES):
        for turn in range(3):
            place = at + turn * third
            _fold_block(comm, call, own, target + place, begin + place, TURN_BYTES)
    for at in range(3 * third, length, FOLD_BLOCK_BYTES):
        block = min(length - at, FOLD_BLOCK_BYTES)
        _fold_block(comm, call, own, target + at, begin + at, block)


@routine
def _fold_block(comm, call, own, target, begin, length):
    move(target, _chunk_of(comm, 0, own) + begin, length)
    for rank in range(1, comm.size):
        fold(comm, call, target, _chunk_of(comm, rank, own) + begin, length)


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
        return synchronise(comm, called(comm))
    begin = 0
    while begin < size_bytes:
        length = min(chunk, size_bytes - begin)
        if begin > 0 or region == MIXED:
            outcome = _contribute(comm, call.send, begin, length)
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
