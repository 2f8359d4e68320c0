"""Broadcast: the root's chunk goes through slots, one step a chunk, two chunks in flight.

With many ranks each slot is small, so the root also fills slots of other ranks
(``slot.fill_slots``).

If ``buf`` is one memory for all ranks, the root's bytes are in it already (``region.py``). If
``buf`` is large and private, the other ranks may read it from the root's memory (``reading.py``),
each beginning at another place. The root may meanwhile write an R-th of the bytes to each of the
other ranks, so that all R ranks end together. ``ways.py`` chooses.
"""

from cobre_kernels.collective.calls import BROADCAST, Broadcast, called
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.regions import OutputMemory
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import move, store_fence
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.shm.control import INLINE_BYTES, PAGE_BYTES
from cobre_kernels.shm.reading import end_reading, read_array, show_array, write_array
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
from cobre_kernels.shm.ways import (
    BOTH,
    READ,
    choose_way,
    end_way,
    is_streamed,
    learn_times,
    show_times,
)


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
    """Move the bytes by one of the ways of a large call, or through slots."""
    way = choose_way(comm, BROADCAST, call.size_bytes, outputs == PRIVATE)
    if way >= READ:
        return end_way(comm, _from_array(comm, call, way))
    streams = is_streamed(comm, way, call.size_bytes)
    return end_way(comm, _move_chunks(comm, call, streams))


@routine
def _from_array(comm, call, way):
    """Let the other ranks read the root's buffer, while the root writes its share to theirs.

    Return USE_SLOTS if a rank cannot reach a buffer, or has its own buffer in a region.
    """
    generation, shown = next_generation(comm), called(comm)
    could = 1
    show_array(comm, generation, call.buffer, could)
    publish(comm, generation, shown)
    if comm.rank != call.root:
        outcome = await_rank(comm, call.root, generation, shown)
        if not has_come(outcome):
            return outcome
        if outcome == OK:
            could = _read_share(comm, call, generation, way)
    outcome = await_all(comm, generation, shown)
    if outcome != OK:
        return outcome
    if comm.rank == call.root and way == BOTH:
        could = _write_shares(comm, call, generation)
    learn_times(comm, generation)
    return end_reading(comm, could)


@routine
def _share(comm, call, number):
    """Return where a share ends, by its number from 1 on; the last share may be shorter."""
    pages = -(-call.size_bytes // PAGE_BYTES)
    return min(number * -(-pages // comm.size) * PAGE_BYTES, call.size_bytes)


@routine
def _read_share(comm, call, generation, way):
    """Read the root's buffer from this rank's place to the end, then from the start to the place.

    If the way is BOTH, the share before the place is left out, because the root writes it. The
    place of the first rank after the root is behind the first share, that of the second rank behind
    the second share, and so on, because readers of one page contend for its reference count.
    """
    number = (comm.rank - call.root) % comm.size
    begin = _share(comm, call, number)
    end = _share(comm, call, number - 1) if way == BOTH else begin
    could = _read(comm, call, generation, begin, call.size_bytes)
    return could and _read(comm, call, generation, 0, end)


@routine
def _read(comm, call, generation, begin, end):
    return read_array(comm, call.root, generation, begin, call.buffer + begin, end - begin)


@routine
def _write_shares(comm, call, generation):
    """As the root, write to each other rank the share that ends at the place of that rank."""
    could = 1
    for number in range(1, comm.size):
        rank = (call.root + number) % comm.size
        begin, end = _share(comm, call, number - 1), _share(comm, call, number)
        could &= write_array(comm, rank, generation, begin, call.buffer + begin, end - begin)
    return could


@routine
def _move_chunks(comm, call, streams):
    """Move chunk after chunk; a broadcast of up to INLINE_BYTES travels in the root's cell."""
    done = 0
    while True:
        length = min(call.size_bytes - done, comm.node.cast_bytes)
        outcome = _chunk(comm, call, (done, length), streams)
        done += length
        if outcome != OK or done >= call.size_bytes:
            if streams:
                store_fence()
            return outcome


@routine
def _chunk(comm, call, span, streams):
    """Move a chunk; ``span`` has the bytes that are done before the chunk, and its length."""
    (done, length), generation, shown = span, next_generation(comm), called(comm)
    chunk = call.buffer + done
    is_inline = call.size_bytes <= INLINE_BYTES
    is_root = comm.rank == call.root
    if is_root and is_inline:
        move(cell_of(comm, call.root, generation).payload, chunk, length)
    elif is_root:
        fill_slots(comm, generation, chunk, length)
    if done == 0:
        show_times(comm, generation)
    publish(comm, generation, shown)
    if not is_root:
        outcome = await_rank(comm, call.root, generation, shown)
        if outcome == OK and is_inline:
            move(chunk, cell_of(comm, call.root, generation).payload, length)
        elif outcome == OK:
            copy_slots(comm, call.root, generation, chunk, length, streams)
        elif not has_come(outcome):
            return outcome
    outcome = await_all(comm, generation, shown)
    if done == 0 and outcome == OK:
        learn_times(comm, generation)
    return outcome
