"""Allgatherv: every rank's chunk goes through its slot, one step a chunk, two chunks in flight.

A byte is copied into the slot by its owner, and out of the slot by each reader. Chunks are small
enough to be read from the owner's cache. If the next rank has arrived already, this rank copies the
chunk of the next rank and its own chunk in turn. If ``recv`` is one memory for all ranks, each rank
copies its own block to that memory, so a byte is copied once (``region.py``). Large blocks may be
read where they are (``reading.py``); ``ways.py`` chooses.
"""

from cobre_kernels.collective.calls import ALLGATHERV, Allgatherv, called
from cobre_kernels.collective.checks import (
    block_of,
    bytes_of,
    largest_block_bytes,
    reach_bytes,
)
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.regions import OutputMemory
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import copy_far, copy_out, copy_two, is_large, move, store_fence
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.shm.control import INLINE_BYTES
from cobre_kernels.shm.reading import end_reading, read_array, show_array
from cobre_kernels.shm.region import PRIVATE, meet_in_region, no_rank_writes, receive
from cobre_kernels.shm.slot import PROBE_EVERY, even_chunk, fill, fill_slot, slot_of
from cobre_kernels.shm.step import await_rank, has_come, next_generation, publish, synchronise
from cobre_kernels.shm.wait import cell_of, has_arrived
from cobre_kernels.shm.ways import READ, choose_way, end_way, is_streamed, learn_times, show_times

BY_TURNS_BYTES = 2**20  # if recv is longer, a second-level cache has no room for two chunks


@kernel(COMM, Allgatherv)
def allgatherv_body(comm, call):
    """Copy blocks to the one ``recv`` that all ranks share, or move blocks through slots."""
    send_bytes = bytes_of(call, comm.rank)
    output = OutputMemory(call.recv, reach_bytes(comm, call), call.send, send_bytes)
    return receive(comm, call, output, _into_region, _by_slots)


@routine
def _into_region(comm, call):
    """Copy this rank's block to its place in the region, after all ranks have entered."""
    outcome = meet_in_region(comm)
    if outcome != OK or no_rank_writes(comm, call):
        return outcome
    own_block, own_bytes = block_of(call, comm.rank), bytes_of(call, comm.rank)
    if own_block != call.send and own_bytes > 0:
        probes = comm.node.generation % PROBE_EVERY == 0
        fill(comm.node.region_fills, own_block, call.send, own_bytes, probes)
    return synchronise(comm, called(comm))


@routine
def _by_slots(comm, call, outputs):
    """Move all blocks by one of the ways of a large call, or through slots."""
    largest = largest_block_bytes(comm.size, call)
    way = choose_way(comm, ALLGATHERV, largest, outputs == PRIVATE)
    if way == READ:
        return end_way(comm, _from_arrays(comm, call))
    streams = is_streamed(comm, way, call.recv_count * call.itemsize)
    return end_way(comm, _move_chunks(comm, call, largest, streams))


@routine
def _from_arrays(comm, call):
    """Read the block of each rank from its ``send``.

    Return USE_SLOTS if a rank cannot reach an array, or has its own output in a region.
    """
    generation, shown, rank = next_generation(comm), called(comm), comm.rank
    show_array(comm, generation, call.send, 1)
    publish(comm, generation, shown)
    own_block, own_bytes = block_of(call, rank), bytes_of(call, rank)
    if own_block != call.send:
        copy_out(own_block, call.send, own_bytes, is_large(call.recv_count * call.itemsize))
        store_fence()
    could, worst = 1, OK
    for _ in range(comm.size - 1):
        rank = rank + 1 if rank + 1 < comm.size else 0
        outcome = await_rank(comm, rank, generation, shown)
        if not has_come(outcome):
            return outcome
        worst = max(worst, outcome)
        if worst == OK:
            target, length = block_of(call, rank), bytes_of(call, rank)
            could &= read_array(comm, rank, generation, 0, target, length)
    if worst != OK:
        return worst
    learn_times(comm, generation)
    return end_reading(comm, could)


@routine
def _move_chunks(comm, call, largest, streams):
    """Move all blocks, chunk after chunk; blocks of up to INLINE_BYTES travel in the cells.

    Ranks that have an output in common write the same bytes, and each rank writes a byte once.
    """
    is_inline = largest <= INLINE_BYTES
    chunk = even_chunk(largest, comm.node.chunk_bytes)
    begin = 0
    while True:
        outcome = _chunk(comm, call, (begin, chunk), is_inline, streams)
        begin += chunk
        if outcome != OK or begin >= largest:
            if streams:
                store_fence()
            return outcome


@routine
def _chunk(comm, call, span, is_inline, streams):
    """Move a chunk of every block that is long enough; ``span`` has the chunk's begin and bytes."""
    generation, shown = next_generation(comm), called(comm)
    (begin, chunk), rank = span, comm.rank
    own_bytes = max(min(bytes_of(call, rank) - begin, chunk), 0)
    own_block = block_of(call, rank) + begin
    source = call.send + begin
    if is_inline:
        move(cell_of(comm, rank, generation).payload, source, own_bytes)
    elif own_bytes > 0:
        fill_slot(comm, generation, source, own_bytes)
    if begin == 0:
        show_times(comm, generation)
    publish(comm, generation, shown)
    own_done = own_bytes if own_block == source else 0
    by_turns = not is_inline and call.recv_count * call.itemsize <= BY_TURNS_BYTES
    if not by_turns or not has_arrived(comm, (rank + 1) % comm.size, generation):
        copy_out(own_block + own_done, source + own_done, own_bytes - own_done, streams)
        own_done = own_bytes
    worst = OK
    for _ in range(comm.size - 1):
        rank += 1
        if rank == comm.size:
            rank = 0
        outcome = await_rank(comm, rank, generation, shown)
        if not has_come(outcome):
            return outcome
        worst = max(worst, outcome)
        length = min(bytes_of(call, rank) - begin, chunk)
        if length > 0 and worst == OK:
            target = block_of(call, rank) + begin
            theirs = _chunk_of(comm, rank, generation, is_inline)
            both = min(length, own_bytes - own_done)
            if both > 0:
                copy_two(target, theirs, own_block + own_done, source + own_done, both)
            copy_far(target + both, theirs + both, length - both, streams)
            own_done += both
    if own_done < own_bytes:
        copy_out(own_block + own_done, source + own_done, own_bytes - own_done, streams)
    if begin == 0 and worst == OK:
        learn_times(comm, generation)
    return worst


@routine
def _chunk_of(comm, rank, generation, is_inline):
    """Return the address at which a rank has published its chunk."""
    if is_inline:
        return cell_of(comm, rank, generation).payload
    return slot_of(comm, rank, generation)
