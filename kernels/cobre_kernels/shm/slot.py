"""Slots and stripes; slots are filled by streaming where the ranks' caches are far apart.

When a rank overwrites a line of its slot, the processor first removes the copies of that line from
the readers' caches. Among cores that share their last-level cache the removal is quick: a slot is
filled at 25 bytes per nanosecond. Where cores do not share that cache (another core complex,
another socket, a virtual machine with cores in such places), every line waits for a probe: 2.5
bytes per nanosecond. There non-temporal stores, for which no core waits, are four to ten times
faster, and the readers stream from memory.

The distance of caches can change while a job runs, so each rank measures it all the time. A rank
times its larger fills, and some of its smaller fills. After a slow fill the rank streams some
fills, and then tries the ordinary way again; each slow trial doubles the number of fills that are
streamed. Streaming changes no byte of any result, so ranks need not agree on it.
"""

from cobre_kernels.machine import libc
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import copy_far, copy_out, is_large, move, store_fence
from cobre_kernels.machine.record import LINE_BYTES

TIMED_FILL_BYTES = 16384  # a fill of so many bytes is always timed: two clock readings cost little
STREAMED_BYTES = 2048  # a shorter fill costs the same, streamed or not
PROBE_EVERY = 32  # while fills are quick, one step in so many times a fill between these lengths
SLOW_BYTES_PER_NS = 6  # ordinary fills reach 25; from memory 9; to far caches 3; streamed fills 20
FIRST_SPAN = 4  # fills streamed after a first slow fill: perhaps this rank only did not run then
LONGEST_SPAN = 256


@routine
def slot_of(comm, rank, generation):
    """Return the address of a rank's slot for a generation.

    If there are two ranks, they exchange their slots in every step: each rank fills the slot that
    it has just read, because its cache holds the lines of that slot. So a line crosses to the other
    cache once a step, and not twice. No rank fills a slot that is still to be read, because the
    only reader of a slot is the rank that fills the slot next.
    """
    node = comm.node
    if node.size == 2:
        return node.buffers + ((rank + generation) & 1) * node.buffer_stride
    buffer = node.buffers + rank * node.buffer_stride
    return buffer + (generation & 1) * node.chunk_bytes


@routine
def even_chunk(size_bytes, most_bytes):
    """Return the bytes of each chunk but the last, so that all chunks have nearly one length.

    If a call had a long chunk and a short one, two ranks would not exchange all lines of a slot.
    """
    if size_bytes <= most_bytes:
        return most_bytes
    chunks, line = -(-size_bytes // most_bytes), 2 * LINE_BYTES
    return min(-(-size_bytes // (chunks * line)) * line, most_bytes)


@routine
def stripe_of(comm, rank, generation):
    """Return the address of a rank's result stripe for a generation."""
    chunk = comm.node.chunk_bytes
    buffer = comm.node.buffers + rank * comm.node.buffer_stride
    return buffer + 2 * chunk + (generation & 1) * (chunk // 2)


@routine
def fill_slot(comm, generation, source, count):
    """Copy a chunk into this rank's slot, so that the next step can publish the chunk."""
    node = comm.node
    if node.size == 1:  # no other rank reads the slot
        return
    target = slot_of(comm, node.rank, generation)
    fill(node.slot_fills, target, source, count, generation % PROBE_EVERY == 0)


@routine
def fill_slots(comm, generation, source, count):
    """Copy up to ``cast_bytes`` into this rank's slot and, if it is full, into the next slots.

    The next slots are those of the ranks after this one. All slots of this parity are free: all
    ranks have read what the slots last held, and in a broadcast only the root fills slots.
    """
    node, rank = comm.node, comm.node.rank
    if node.size == 1:
        return
    begin = 0
    while begin < count:
        length = min(count - begin, node.chunk_bytes)
        target = slot_of(comm, rank, generation)
        fill(node.slot_fills, target, source + begin, length, generation % PROBE_EVERY == 0)
        begin += node.chunk_bytes
        rank = rank + 1 if rank + 1 < node.size else 0


@routine
def copy_slots(comm, rank, generation, target, count, streams):
    """Copy what ``rank`` has put into slots by :func:`fill_slots`."""
    node, begin = comm.node, 0
    while begin < count:
        length = min(count - begin, node.chunk_bytes)
        copy_far(target + begin, slot_of(comm, rank, generation), length, streams)
        begin += node.chunk_bytes
        rank = rank + 1 if rank + 1 < node.size else 0


@routine
def fill(fills, target, source, count, probes):
    """Copy to memory that other ranks have read, so that the next step can publish the bytes."""
    if count < STREAMED_BYTES:
        move(target, source, count)
    elif is_large(count) or _streams(fills):
        copy_out(target, source, count, True)
        store_fence()
    elif count >= TIMED_FILL_BYTES:
        began = libc.monotonic_ns()
        move(target, source, count)
        _learn(fills, (libc.monotonic_ns() - began) * SLOW_BYTES_PER_NS > count)
    elif fills.span > FIRST_SPAN or probes:
        began = libc.monotonic_ns()
        move(target, source, count)
        store_fence()  # else so few stores could still wait in the core when the clock is read
        _learn(fills, (libc.monotonic_ns() - began) * SLOW_BYTES_PER_NS > count)
    else:
        move(target, source, count)


@routine
def _learn(fills, is_slow):
    """Choose how many fills to stream next, by whether a timed ordinary fill was slow."""
    if not is_slow:
        fills.span = FIRST_SPAN
    else:  # if a fill was slow only because the rank did not run, a few streamed fills cost little
        span = max(fills.span, FIRST_SPAN)
        fills.to_stream = span
        fills.span = min(2 * span, LONGEST_SPAN)


@routine
def _streams(fills):
    left = fills.to_stream
    if left > 0:
        fills.to_stream = left - 1
    return left > 0
