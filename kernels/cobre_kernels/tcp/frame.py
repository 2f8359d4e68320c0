"""Frames on the wire: u32 length of what follows, u8 tag, payload; integers are big-endian.

A message of a collective begins with a head: after the tag an argument (the op of an allreduce)
and two bytes of zero, then four words: step, kind, length, detail. Payload, if any, follows. A
control frame has no argument, and three words after the step that depend on its tag.
"""

from cobre_kernels.machine.atomics import peek, poke, swap_bytes
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp.tags import LENGTH_BYTES, PREFIX_BYTES

WORDS = 32  # bytes of the four words
HEAD_BYTES = 8 + WORDS
CONTROL_BYTES = PREFIX_BYTES + WORDS
CONTROL_OFFSET = 8 - PREFIX_BYTES  # where a control frame begins, so that its words are aligned

STEP = 8
KIND = 16
LENGTH = 24
DETAIL = 32

LOW_32 = 0xFFFFFFFF


@routine
def _big_endian_length(following):
    return swap_bytes(following) >> 32 & LOW_32


@routine
def first_word(tag, argument, body_bytes):
    """What the head of a message with ``body_bytes`` of payload begins with."""
    following = _big_endian_length(HEAD_BYTES - LENGTH_BYTES + body_bytes)
    return following | tag << 32 | argument << 40


@routine
def write_head(place, tag, argument, step, kind, length, detail, body_bytes):
    """Write the head of a message."""
    poke(place, first_word(tag, argument, body_bytes))
    _write_words(place, step, kind, length, detail)


@routine
def write_control(place, tag, following_bytes, step, a, b, c):
    """Write a control frame at ``place + CONTROL_OFFSET``; more bytes may follow it."""
    following = _big_endian_length(CONTROL_BYTES - LENGTH_BYTES + following_bytes)
    poke(place, following << 24 | tag << 56)
    _write_words(place, step, a, b, c)


@routine
def _write_words(place, step, a, b, c):
    poke(place + STEP, swap_bytes(step))
    poke(place + KIND, swap_bytes(a))
    poke(place + LENGTH, swap_bytes(b))
    poke(place + DETAIL, swap_bytes(c))


@routine
def word_at(place):
    """Read a word of a frame."""
    return swap_bytes(peek(place))


@routine
def control_tag(place):
    """Tag of the control frame at ``place + CONTROL_OFFSET``."""
    return peek(place) >> 56 & 0xFF


@routine
def write_prefix(place, tag, body_bytes):
    """Write the first bytes of a frame of bulk data."""
    poke(place, _big_endian_length(body_bytes + 1) | tag << 32)


@routine
def is_prefix(place, tag, body_bytes):
    """Whether these are the first bytes of such a frame."""
    return peek(place) & 0xFFFFFFFFFF == _big_endian_length(body_bytes + 1) | tag << 32


@routine
def prefix_tag(place):
    """Tag of a frame of bulk data."""
    return peek(place) >> 32 & 0xFF
