"""Gatherv: every rank's chunk goes through the rank's slot, and the root alone copies it out.

In the first step the cell of each rank says how many elements the rank sends, so every rank learns
how many steps there are. Blocks of up to INLINE_BYTES travel in the cells; the root's cell has a
hash of its counts. If the root receives in a region, the root's signature has the mark IN_REGION,
and a last step ends the collective. Without that step another rank could return, and write to the
region, which it sees too, while the root still copies.
"""

from cobre_kernels.collective.calls import Gatherv, ShownWords, called, contribution_bytes
from cobre_kernels.collective.checks import block_of, bytes_of, largest_block_bytes
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.gather import agreement, expectation, note_count, with_counts
from cobre_kernels.collective.regions import may_be_shared
from cobre_kernels.collective.status import OK, USE_SLOTS
from cobre_kernels.machine.atomics import peek, poke
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import copy_far, is_large, move, store_fence
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.shm.control import IN_REGION, INLINE_BYTES
from cobre_kernels.shm.slot import fill_slot, slot_of
from cobre_kernels.shm.step import (
    await_all,
    next_generation,
    publish,
    record_calls,
    synchronise,
)
from cobre_kernels.shm.wait import cell_of


@kernel(COMM, Gatherv)
def gatherv_body(comm, call):
    """Learn the counts with the first chunks, then move the other chunks."""
    generation, mark = next_generation(comm), 0
    if comm.rank == call.root:
        poke(cell_of(comm, comm.rank, generation).payload, expectation(comm, call))
        if may_be_shared(comm, call.recv, call.recv_count * call.itemsize):
            mark = IN_REGION
    outcome = _step(comm, call, generation, 0, mark)
    ends_together = outcome == USE_SLOTS
    if outcome == OK or ends_together:
        record_calls(comm)
        for rank in range(comm.size):
            note_count(comm, rank, comm.failures[rank].count)
        outcome = agreement(comm, peek(cell_of(comm, call.root, generation).payload))
    if outcome != OK:
        return outcome
    call = with_counts(comm, call)
    _take_out(comm, call, generation, 0)
    begin, longest = comm.node.chunk_bytes, largest_block_bytes(comm.size, call)
    while begin < longest:
        generation = next_generation(comm)
        outcome = _step(comm, call, generation, begin, 0)
        if outcome != OK:
            return outcome
        _take_out(comm, call, generation, begin)
        begin += comm.node.chunk_bytes
    if is_large(call.recv_count * call.itemsize):
        store_fence()
    return synchronise(comm, called(comm)) if ends_together else OK


@routine
def _step(comm, call, generation, begin, mark):
    """Publish the chunk at ``begin`` of this rank's block, and await all ranks.

    ``mark`` is added to the signature that the rank shows.
    """
    shown = ShownWords(comm.signature | mark, comm.compared, comm.count)
    send_bytes = contribution_bytes(call)
    if comm.rank != call.root and begin < send_bytes:
        if send_bytes <= INLINE_BYTES:
            move(cell_of(comm, comm.rank, generation).payload, call.send, send_bytes)
        else:
            length = min(send_bytes - begin, comm.node.chunk_bytes)
            fill_slot(comm, generation, call.send + begin, length)
    publish(comm, generation, shown)
    return await_all(comm, generation, shown)


@routine
def _take_out(comm, call, generation, begin):
    """On the root, copy the chunks of all ranks to their blocks."""
    if comm.rank != call.root:
        return
    streams = is_large(call.recv_count * call.itemsize)
    for rank in range(comm.size):
        length = min(bytes_of(call, rank) - begin, comm.node.chunk_bytes)
        if length > 0 and bytes_of(call, rank) <= INLINE_BYTES:
            move(block_of(call, rank), cell_of(comm, rank, generation).payload, length)
        elif length > 0:
            target = block_of(call, rank) + begin
            copy_far(target, slot_of(comm, rank, generation), length, streams)
