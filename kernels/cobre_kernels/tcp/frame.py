"""Frames on the wire; the only file that turns words into the byte order of the network.

Every frame begins with a prefix of 5 bytes: u32 length of what follows, u8 tag. Three kinds:

- a message of a collective: HEADER, then payload if there is any;
- a control message: CONTROL_MESSAGE without its first CONTROL_OFFSET bytes, so that its words are
  aligned in memory; a failure report is followed by one FAILURE for each rank;
- bulk data: prefix and payload. Its receiver knows every length already.
"""

from cobre_kernels.machine.atomics import peek, poke, swap_bytes
from cobre_kernels.machine.record import Record, word
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp.tags import LENGTH_BYTES, PREFIX_BYTES

HEADER = Record(
    "TcpHeader",
    "Begins a message of a collective, in the byte order of the network.",
    first=word("length of the frame (32 bits), tag (8), op of an allreduce (8), 0"),
    step=word("number of the collective"),
    signature=word("what the sender called"),
    length=word("length of its call"),
    detail=word("detail of its call"),
)
CONTROL_MESSAGE = Record(
    "ControlMessage",
    "A control message, in the byte order of the network.",
    first=word("three bytes that are not sent, length of the frame, tag"),
    step=word("WAITING, FAILURE: the sender's step; SHUTDOWN: the last that it has completed"),
    status=word("FAILURE: status of the collective that failed"),
    unused=word("always 0"),
    row_words=word("FAILURE: words of each row that follows; 0: no row"),
)
HEADER_BYTES = HEADER.size_bytes
CONTROL_OFFSET = 8 - PREFIX_BYTES
CONTROL_BYTES = CONTROL_MESSAGE.size_bytes - CONTROL_OFFSET

_LOW_32 = 0xFFFFFFFF
_LOW_40 = 0xFFFFFFFFFF


@routine
def _length_on_wire(following_bytes):
    return swap_bytes(following_bytes) >> 32 & _LOW_32


@routine
def first_word(comm, tag, payload_bytes):
    """Return what the header of a message begins with."""
    following = _length_on_wire(HEADER_BYTES - LENGTH_BYTES + payload_bytes)
    argument = comm.signature >> 16 & 0xFF
    return following | tag << 32 | argument << 40


@routine
def write_header(comm, header, tag, payload_bytes):
    """Write the header of a message: what this rank called."""
    header.first = first_word(comm, tag, payload_bytes)
    header.step = swap_bytes(comm.generation)
    header.signature = swap_bytes(comm.signature)
    header.length = swap_bytes(comm.length)
    header.detail = swap_bytes(comm.detail)


@routine
def write_control(comm, message, tag, status, rows_bytes):
    """Write a control message about this rank's step; rows of so many bytes may follow it."""
    following = _length_on_wire(CONTROL_BYTES - LENGTH_BYTES + rows_bytes)
    message.first = following << 8 * CONTROL_OFFSET | tag << 56
    message.step = swap_bytes(comm.generation)
    message.status = swap_bytes(status)
    message.unused = 0
    message.row_words = swap_bytes(rows_bytes // 8 // comm.size)


@routine
def control_tag(message):
    """Return the tag of a control message."""
    return message.first >> 56 & 0xFF


@routine
def swap_rows(size, target, source):
    """Copy a failure record for each rank, between memory and the network's byte order."""
    for rank in range(size):
        there, here = target[rank], source[rank]
        there.reason = swap_bytes(here.reason)
        there.signature = swap_bytes(here.signature)
        there.length = swap_bytes(here.length)
        there.detail = swap_bytes(here.detail)


@routine
def write_prefix(cursor, tag, payload_bytes):
    """Begin a frame of bulk data."""
    poke(cursor.prefix, _length_on_wire(payload_bytes + 1) | tag << 32)
    cursor.prefix_left = PREFIX_BYTES
    cursor.frame_left = payload_bytes


@routine
def is_prefix(cursor, tag, payload_bytes):
    """Tell whether such a frame has begun to come."""
    return peek(cursor.prefix) & _LOW_40 == _length_on_wire(payload_bytes + 1) | tag << 32


@routine
def prefix_tag(cursor):
    """Return the tag of the frame of bulk data that has begun to come."""
    return peek(cursor.prefix) >> 32 & 0xFF
