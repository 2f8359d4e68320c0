"""Frames on the wire: how their first words are made and read, in the network's byte order.

Every frame begins with a prefix of 5 bytes: u32 length of the rest, u8 tag. There are three kinds
of frames:

- a header, which includes the prefix, and then payload if there is any;
- a control message (nodes/messages.py), which includes the prefix too: CONTROL_MESSAGE, then words.
  The first CONTROL_OFFSET bytes of CONTROL_MESSAGE only align words in memory, and are not sent;
- bulk data: prefix and payload. The receiver knows every length before the frame arrives.
"""

from cobre_kernels.machine.atomics import peek, poke, swap_bytes
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.record import WORD_BYTES, Record, word
from cobre_kernels.tcp.tags import FIRST_CONTROL, LENGTH_BYTES, PREFIX_BYTES

FRAME_HEADER = Record(
    "TcpHeader",
    "The header of a message between two leaders, in the byte order of the network.",
    first=word("length of the frame (32 bits), tag (8), marks of the sender's header (8), zeros"),
    verb=word("number of the verb"),
    signature=word("signature of the sender's call"),
    compared=word("the second word of the sender's call that ranks compare"),
    came=word("when the last rank of the sender's node arrived, and which rank that was"),
)
CONTROL_MESSAGE = Record(
    "ControlMessage",
    "A control message, in the byte order of the network.",
    first=word("three bytes that are not sent, then the length of the frame, and the tag"),
    number=word("the number in the message"),
)
FRAME_HEADER_BYTES = FRAME_HEADER.size_bytes
CONTROL_OFFSET = WORD_BYTES - PREFIX_BYTES
CONTROL_BYTES = CONTROL_MESSAGE.size_bytes - CONTROL_OFFSET

_LOW_32 = 0xFFFFFFFF
_LOW_40 = 0xFFFFFFFFFF


@routine
def _length_on_wire(following_bytes):
    return swap_bytes(following_bytes) >> 32 & _LOW_32


@routine
def header_first(tag, marks, payload_bytes):
    """Return the first word of the header of a message."""
    following = _length_on_wire(FRAME_HEADER_BYTES - LENGTH_BYTES + payload_bytes)
    return following | tag << 32 | marks << 40


@routine
def write_header(comm, header, tag, payload_bytes):
    """Write the header of a message, from the call of this leader's node."""
    own = comm.nodes.header
    header.first = header_first(tag, own.marks, payload_bytes)
    header.verb = swap_bytes(comm.nodes.begun)
    header.signature = swap_bytes(own.signature)
    header.compared = swap_bytes(own.compared)
    header.came = swap_bytes(own.came)


@routine
def read_header(header, target):
    """Copy the header of a message to a LeaderHeader, in this machine's byte order."""
    target.marks = header.first >> 40 & 0xFF
    target.signature = swap_bytes(header.signature)
    target.compared = swap_bytes(header.compared)
    target.came = swap_bytes(header.came)


@routine
def payload_bytes_of(header):
    """Return how many bytes of payload follow a header."""
    return (swap_bytes(header.first) >> 32 & _LOW_32) - (FRAME_HEADER_BYTES - LENGTH_BYTES)


@routine
def control_first(kind, words_bytes):
    """Return the first word of a control message that ends with ``words_bytes`` bytes of words."""
    following = _length_on_wire(CONTROL_BYTES - LENGTH_BYTES + words_bytes)
    return following << 24 | (FIRST_CONTROL + kind) << 56


@routine
def control_kind(message):
    """Return the kind of a control message."""
    return (message.first >> 56 & 0xFF) - FIRST_CONTROL


@routine
def is_control(message, kind, words_bytes):
    """Tell whether a control message has this kind and length; the 3 unsent bytes do not count."""
    return message.first >> 24 << 24 == control_first(kind, words_bytes)


@routine
def write_prefix(cursor, tag, payload_bytes):
    """Write the prefix of a frame of bulk data, and set the cursor to the start of the frame."""
    poke(cursor.prefix, _length_on_wire(payload_bytes + 1) | tag << 32)
    cursor.prefix_left = PREFIX_BYTES
    cursor.frame_left = payload_bytes


@routine
def is_prefix(cursor, tag, payload_bytes):
    """Tell whether the prefix that has arrived belongs to a frame of this tag and length."""
    return peek(cursor.prefix) & _LOW_40 == _length_on_wire(payload_bytes + 1) | tag << 32


@routine
def prefix_tag(cursor):
    """Return the tag of the frame of bulk data that has begun to arrive."""
    return peek(cursor.prefix) >> 32 & 0xFF
