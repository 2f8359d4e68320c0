"""The control region: the shared words of the ranks of one node, at the start of their segment.

::

    0                 CONTROL, with one RANK_BLOCK per rank
    (line aligned)    one JOURNAL per rank
    (line aligned)    COUNCIL, with one SEAT per rank
    (line aligned)    two rolls per rank, each of one bit per rank
    (page aligned)    one collective buffer per rank, of ``buffer_bytes`` bytes

A *generation* is the number of a step of a communicator: 1, 2, 3, ... In a *step*, a rank fills its
cell and its slot for the parity of the generation, publishes ``arrived``, and waits until all other
ranks have published ``arrived`` too. So a rank is at most one generation ahead of another rank, and
cannot write for generation g + 2 while another rank still reads generation g. Therefore two cells
and two slots a rank are enough, with one wait per step.

A *chunk* is the part of a payload that one step moves. A *slot* is the part of a rank's collective
buffer that holds the rank's chunk. A *stripe* is the part of a chunk that one rank folds. The
buffer of a rank is::

    slot of even generations | slot of odd | result stripe of even | result stripe of odd

If there are two ranks, they use only the first slot of each buffer, in turn (``slot.py``).

Words that different ranks write are 128 bytes apart.
"""

from cobre_kernels.collective.seeing.journal import JOURNAL
from cobre_kernels.machine.record import LINE_BYTES, Record, memory, own_rows, shared

PAGE_BYTES = 4096
PLACE_BYTES = 384
MAGIC = 0x314D4D4F43455243  # "CRECOMM1", little-endian
UNFINISHED = 0x304D4D4F43455243  # "CRECOMM0"

MEMBER = 0
HAS_CLOSED = 1
HAS_FAILED = 2

INLINE_BYTES = LINE_BYTES - 32
RANK_BITS = 16  # how many bits of the word ``writing`` each of its two ranks has
IN_REGION = -(2**63)  # in a cell's signature: the payload is the location of the rank's output

CELL = Record(
    "Cell",
    "The words that one rank publishes in a step; shared, written by that rank.",
    line_bytes=LINE_BYTES,
    arrived=shared("generation of the last step of this parity that the rank has entered"),
    signature=shared("signature of the rank's call: operation, dtype, op or root (calls.py)"),
    compared=shared("the other word of the rank's call that ranks compare (comm.py)"),
    count=shared("the rank's own number of elements, for messages only"),
    payload=memory(INLINE_BYTES, "inline data, or a record that the rank shows, such as Location"),
)

RANK_BLOCK = Record(
    "RankBlock",
    "The shared words of one rank.",
    line_bytes=LINE_BYTES,
    pid=shared("process id once the rank has attached, 0 before; written by its rank"),
    condition=shared("MEMBER, then HAS_CLOSED or HAS_FAILED for ever; written by its rank"),
    writing=shared(
        "number of the rank's write to another rank's array, with both ranks in it; 0: no write"
    ),
    sleepers=shared("how many peers sleep until this rank arrives", begins_line=True),
    cells=own_rows(CELL, "for even and for odd generations", 2, begins_line=True),
)

CONTROL = Record(
    "Control",
    "The start of the segment; shared. Rank 0 of the node writes the words up to ready.",
    line_bytes=LINE_BYTES,
    published=shared("UNFINISHED, then MAGIC once the words up to ready are valid"),
    sources=shared("hash of the sources of the writer"),
    size=shared("number of ranks"),
    buffer_bytes=shared("bytes of collective buffer per rank"),
    cast_bytes=shared("bytes that a step of a broadcast moves"),
    place=memory(PLACE_BYTES, "folder of these sources, as text"),
    ready=shared("1 once all ranks have attached and the name is unlinked", begins_line=True),
    late_told=shared("step and number of the last line on late ranks", begins_line=True),
    blocks=own_rows(RANK_BLOCK, "one for each rank", begins_line=True),
)

ROW_BYTES = 512  # of the row that one rank gives in a roll call
AWAY = -1  # in the word ``turn`` of a seat: this rank answers no roll call any more

SEAT = Record(
    "Seat",
    "What one rank shows in the roll calls of a shrink; shared, written by that rank.",
    line_bytes=LINE_BYTES,
    turn=shared("the last roll call that the rank has answered; AWAY: it answers none any more"),
    rows=memory(2 * ROW_BYTES, "what the rank gives in even and odd roll calls", begins_line=True),
)

COUNCIL = Record(
    "Council",
    "Where the survivors of a node agree on who is left; no collective touches it.",
    line_bytes=LINE_BYTES,
    decision=shared("the last roll call decided, how, and by which rank: see DECISION_BITS"),
    seats=own_rows(SEAT, "one for each rank", begins_line=True),
)

# A decision has the number of the roll call, a bit that says whether time was over, and the rank
# that has decided.
DECISION_BITS = 16
TIME_OVER = 1 << DECISION_BITS - 1


def journals_offset(size):
    """Return the offset of rank 0's journal in a segment of ``size`` ranks."""
    return CONTROL.offsets["blocks"] + size * RANK_BLOCK.size_bytes


def council_offset(size):
    """Return the offset of the council in a segment of ``size`` ranks."""
    return journals_offset(size) + size * JOURNAL.size_bytes


def roll_bytes(size):
    """Return the bytes of a roll."""
    return -(-size // 8)


def roll_offset(size, rank, call):
    """Return the offset of the roll that a rank proposes in a roll call, with ``size`` ranks."""
    first = council_offset(size) + COUNCIL.offsets["seats"] + size * SEAT.size_bytes
    room = -(-2 * roll_bytes(size) // LINE_BYTES) * LINE_BYTES  # no line is written by two ranks
    return first + rank * room + (call & 1) * roll_bytes(size)


def buffers_offset(size):
    """Return the offset of the first collective buffer in a segment of ``size`` ranks."""
    used = roll_offset(size, size, 0)
    return -(-used // PAGE_BYTES) * PAGE_BYTES


def chunk_bytes(buffer_bytes):
    """Return the bytes of a slot; two slots and two result stripes of half a slot fill a buffer."""
    return buffer_bytes // 3 // LINE_BYTES * LINE_BYTES
