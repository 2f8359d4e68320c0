"""Broadcast: the root's chunk goes through slots, one step a chunk, two chunks in flight.

Among many ranks a slot is small, so the root fills those of other ranks too (``slot.fill_slots``).

Where ``buf`` is one memory for all ranks, the root's bytes are there already (``region.py``). A
large private ``buf`` is read from the root's memory (``reading.py``).
"""

from cobre_kernels.collective.calls import Broadcast, called
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.regions import may_be_shared, note_location
from cobre_kernels.collective.status import OK, USE_SLOTS
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import is_large, move, store_fence
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.shm.control import INLINE_BYTES
from cobre_kernels.shm.reading import end_reading, may_read, read_array, show_array
from cobre_kernels.shm.region import meet_in_region, outputs_meet
from cobre_kernels.shm.slot import copy_slots, fill_slots
from cobre_kernels.shm.step import (
    await_all,
    await_rank,
    has_come,
    next_generation,
    publish,
    synchronise,
)
from cobre_kernels.shm.wait import cell_of


@kernel(COMM, Broadcast)
def broadcast_body(comm, call):
    """Find the root's bytes in one ``buf`` of all ranks, or move them through slots."""
    outcome, ends_together = USE_SLOTS, False
    if may_be_shared(comm, call.buffer, call.size_bytes):
        note_location(comm, call.buffer, call.size_bytes, call.buffer, call.size_bytes)
        outcome = meet_in_region(comm, next_generation(comm))
        ends_together = outcome == USE_SLOTS and outputs_meet(comm, call.size_bytes)
    elif may_read(comm, call.size_bytes):
        outcome = _read_from_root(comm, call)
        ends_together = outcome == USE_SLOTS and outputs_meet(comm, call.size_bytes)
    while outcome == USE_SLOTS:
        outcome = _move_chunks(comm, call)
        if outcome == USE_SLOTS:
            ends_together = outputs_meet(comm, call.size_bytes)
    return synchronise(comm, called(comm)) if ends_together and outcome == OK else outcome


@routine
def _read_from_root(comm, call):
    """Read the root's buffer in its memory; USE_SLOTS if a rank cannot, or has one in a region."""
    generation, shown = next_generation(comm), called(comm)
    could = 1
    if comm.rank == call.root:
        show_array(comm, generation, call.buffer)
    publish(comm, generation, shown)
    if comm.rank != call.root:
        outcome = await_rank(comm, call.root, generation, shown)
        if not has_come(outcome):
            return outcome
        if outcome == OK:
            could = read_array(comm, call.root, generation, call.buffer, call.size_bytes)
    outcome = await_all(comm, generation, shown)
    return end_reading(comm, could) if outcome == OK else outcome


@routine
def _move_chunks(comm, call):
    """Move chunk after chunk; up to INLINE_BYTES travel in the root's cell."""
    done = 0
    while True:
        length = min(call.size_bytes - done, comm.node.cast_bytes)
        outcome = _chunk(comm, call, call.buffer + done, length)
        done += length
        if outcome != OK or done >= call.size_bytes:
            if is_large(call.size_bytes):
                store_fence()
            return outcome


@routine
def _chunk(comm, call, chunk, length):
    generation, shown = next_generation(comm), called(comm)
    is_inline = call.size_bytes <= INLINE_BYTES
    is_root = comm.rank == call.root
    if is_root and is_inline:
        move(cell_of(comm, call.root, generation).payload, chunk, length)
    elif is_root:
        fill_slots(comm, generation, chunk, length)
    publish(comm, generation, shown)
    if not is_root:
        outcome = await_rank(comm, call.root, generation, shown)
        if outcome == OK and is_inline:
            move(chunk, cell_of(comm, call.root, generation).payload, length)
        elif outcome == OK:
            copy_slots(comm, call.root, generation, chunk, length, is_large(call.size_bytes))
        elif not has_come(outcome):
            return outcome
    return await_all(comm, generation, shown)
