"""Broadcast: the root's chunk goes through slots, one step a chunk, two chunks in flight.

With many ranks each slot is small, so the root also fills slots of other ranks
(``slot.fill_slots``).

If ``buf`` is one memory for all ranks, the root's bytes are in it already (``region.py``). If
``buf`` is large and private, the other ranks read it from the root's memory (``reading.py``).
"""

from cobre_kernels.collective.calls import Broadcast, called
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.regions import OutputMemory
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import is_large, move, store_fence
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.shm.control import INLINE_BYTES
from cobre_kernels.shm.reading import end_reading, may_read, read_array, show_array
from cobre_kernels.shm.region import PRIVATE, meet_in_region, receive
from cobre_kernels.shm.slot import copy_slots, fill_slots
from cobre_kernels.shm.step import (
    await_all,
    await_rank,
    has_come,
    next_generation,
    publish,
)
from cobre_kernels.shm.wait import cell_of


@kernel(COMM, Broadcast)
def broadcast_body(comm, call):
    """Find the root's bytes in the one ``buf`` that all ranks share, or move the bytes."""
    output = OutputMemory(call.buffer, call.size_bytes, call.buffer, call.size_bytes)
    return receive(comm, call, output, _into_region, _by_slots)


@routine
def _into_region(comm, call):
    """Go through a step; the root's bytes are in the ``buf`` of all ranks already."""
    return meet_in_region(comm)


@routine
def _by_slots(comm, call, outputs):
    """Read the root's buffer in the root's memory, or move the buffer through slots."""
    if outputs == PRIVATE and may_read(comm, call.size_bytes):
        return _read_from_root(comm, call)
    return _move_chunks(comm, call)


@routine
def _read_from_root(comm, call):
    """Read the buffer in the root's memory.

    Return USE_SLOTS if a rank cannot read there, or has its own buffer in a region.
    """
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
    """Move chunk after chunk; a broadcast of up to INLINE_BYTES travels in the root's cell."""
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
