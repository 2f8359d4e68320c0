"""Filling slots; past the caches where the ranks' caches are far apart.

Before a rank can overwrite a line of its slot, the copies that the readers' caches hold of it must
go. Among cores that share their last-level cache that is quick: a slot is filled at 25 bytes per
nanosecond here. If they do not (another core complex, another socket, a virtual machine whose cores
are placed so), every line waits for a probe: 2.5 bytes per nanosecond. Then non-temporal stores,
which nobody waits for, are four to ten times faster, and the readers stream from memory.

Which holds can change while a job runs, so it is measured all the time: a rank times its larger
fills, and some of its smaller ones, streams for a while after a slow one, and tries the ordinary
way again; each slow trial doubles the while. That changes no byte of any result, so ranks need not
agree on it.
"""

from cobre_kernels import layout, libc
from cobre_kernels.atomics import peek, poke
from cobre_kernels.copy import move, move_out, settle
from cobre_kernels.routine import routine

TIMED_FILL_BYTES = 16384  # long beside two readings of the clock: each is timed
STREAMED_BYTES = 2048  # below, both ways cost the same
PROBE_EVERY = 32  # of the fills between these two, so many pass untimed while they are quick
SLOW_PROBE_BYTES_PER_NS = 6  # stores and their way to the cache together: 13 and more, or 3
SLOW_BYTES_PER_NS = 12  # ordinary fills reach 25, or 2 to 9; streamed ones about 20
FIRST_SPAN = 4  # fills; one slow fill may only mean that this rank was set aside meanwhile
LONGEST_SPAN = 256


@routine
def slot_of(state, rank, generation):
    """Address of a rank's slot for a generation."""
    buffer = peek(state + layout.BUFFERS) + rank * peek(state + layout.BUFFER_STRIDE)
    return buffer + (generation & 1) * peek(state + layout.CHUNK_BYTES)


@routine
def fill_slot(state, generation, source, count):
    """Copy a chunk into this rank's slot; ready to be published."""
    if peek(state + layout.COMM_SIZE) == 1:  # nobody reads it
        return
    slot = slot_of(state, peek(state + layout.RANK), generation)
    if count < STREAMED_BYTES:
        move(slot, source, count)
    elif _streams(state):
        move_out(slot, source, count, True)
        settle()
    elif count >= TIMED_FILL_BYTES:
        began = libc.monotonic_ns()
        move(slot, source, count)
        _judge(state, (libc.monotonic_ns() - began) * SLOW_BYTES_PER_NS > count)
    elif peek(state + layout.STREAM_SPAN) > FIRST_SPAN or generation % PROBE_EVERY == 0:
        began = libc.monotonic_ns()
        move(slot, source, count)
        settle()  # so few stores would wait in the core, out of the clock's sight
        _judge(state, (libc.monotonic_ns() - began) * SLOW_PROBE_BYTES_PER_NS > count)
    else:
        move(slot, source, count)


@routine
def _judge(state, is_slow):
    """Draw conclusions from an ordinary fill that was timed."""
    if not is_slow:
        poke(state + layout.STREAM_SPAN, FIRST_SPAN)
    else:  # or only set aside meanwhile: then a few streamed fills cost little
        span = max(peek(state + layout.STREAM_SPAN), FIRST_SPAN)
        poke(state + layout.FILLS_TO_STREAM, span)
        poke(state + layout.STREAM_SPAN, min(2 * span, LONGEST_SPAN))


@routine
def _streams(state):
    left = peek(state + layout.FILLS_TO_STREAM)
    if left > 0:
        poke(state + layout.FILLS_TO_STREAM, left - 1)
    return left > 0
