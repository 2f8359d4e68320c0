"""The table of links: what one communicator over sockets keeps beside its state.

Private memory of its process; one block of words for the whole, one record for each rank. All
words are 64-bit integers, offsets are in bytes. See docs/design/tcp-protocol.md for the links.

    block           meaning
    RING_OUT        descriptor of the one-way link to the next rank, -1 without one
    RING_IN         of the one from the rank before
    STAR_BYTES      largest payload that goes through rank 0
    POLLS           address of the entries for poll(2): 3 for each rank and 2 more
    OUTBOX          address of STAR_BYTES where rank 0 packs what it sends to all
    STAGING         address of STAGES chunks of CHUNK_BYTES for the chain of an allreduce
    BULLETIN        address where a notice of failure is put together: one record for each rank
    IDLE_SINCE      when this rank last moved a byte in this step; 0: it has just done so
    ROLL_CALLED_NS  when this rank last told the others that it waits
    OVERDUE_NS      when the timeout of this wait was over; 0: not yet
    SWEPT           the step in which it last read all control links
    VERDICT         the outcome that another rank's notice told, else OK
    VERDICT_STEP    and the step that it is about
    VERDICT_RECORDS address of the records that came with it
    LOOKED_NS       when this rank last looked for signals and news in this step; 0: not yet
    AWAITED_IN      data phase: the rank this one waits for to send, -1 for none
    AWAITED_OUT     and the one it waits for to receive
    WANTS_IN, WANTS_OUT   whether it waits for bytes, or for room, on the ring
    BLOCKS          address of a pair of words for each rank: where its block is, and its bytes
    CURSOR_IN, CURSOR_OUT   where the ring's receiver and sender are (ring.py, chain.py)
    CALLED          kind, length and detail of this rank's call
    MESSAGE         struct msghdr, followed by two struct iovec
    NOTICE          control frame to send
    LONE_POLL       one entry for poll(2)

    record          meaning
    CONTROL_FD, STAR_FD    descriptors of the links to that rank; -1: none, or ended
    CONDITION       MEMBER, or why it takes no further part: a reason of layout.py
    COMPLETED       and the last step that it had completed then
    HEARD_NS        when it last said that it waits
    HEAD            head of the message to send to it
    HEAD_LEFT       bytes of the head still to send
    BODY, BODY_LEFT address and bytes of the payload still to send
    INBOX           address where its message comes in, head first
    FILL, WANT      bytes of it that are here, and that there will be if the ranks agree
    FIRST_WORD      what the head begins with if the ranks agree
    VIEW            UNREAD, AGREES, or DISAGREES: what its head says
    NEWS, NEWS_FILL the control frame that comes in
"""

from cobre_kernels import layout
from cobre_kernels.machine.atomics import peek
from cobre_kernels.machine.routine import routine

RING_OUT = 0
RING_IN = 8
STAR_BYTES = 16
POLLS = 24
OUTBOX = 32
STAGING = 40
BULLETIN = 48
IDLE_SINCE = 56
ROLL_CALLED_NS = 64
SWEPT = 72
VERDICT = 80
AWAITED_IN = 88
AWAITED_OUT = 96
WANTS_IN = 104
WANTS_OUT = 112
CALLED = 120
MESSAGE = 144
NOTICE = 232
LONE_POLL = 280
OVERDUE_NS = 288
BLOCKS = 296
CURSOR_IN = 320
CURSOR_OUT = 384
VERDICT_STEP = 448
VERDICT_RECORDS = 456
LOOKED_NS = 464
RECORDS = 512

CONTROL_FD = 0
STAR_FD = 8
CONDITION = 16
COMPLETED = 24
HEARD_NS = 32
HEAD = 40
HEAD_LEFT = 80
BODY = 88
BODY_LEFT = 96
INBOX = 104
FILL = 112
WANT = 120
FIRST_WORD = 128
VIEW = 136
NEWS = 144
NEWS_FILL = 192
RECORD_BYTES = 256

MEMBER = layout.ARRIVED_IN_TIME

UNREAD = 0
AGREES = 1
DISAGREES = 2

POLL_BYTES = 8
STAGES = 4
CHUNK_BYTES = 256 * 1024  # a multiple of every element's size; STAGES of them fit a cache


def table_words(size):
    """Number of int64 words of the table of a communicator of ``size`` ranks."""
    return (RECORDS + size * RECORD_BYTES) // layout.WORD_BYTES


@routine
def links_of(state):
    """Address of the table."""
    return peek(state + layout.LINKS)


@routine
def record_of(state, rank):
    """Address of a rank's record."""
    return links_of(state) + RECORDS + rank * RECORD_BYTES


@routine
def is_hub(state):
    """Whether this rank is the centre of the star."""
    return peek(state + layout.RANK) == 0


@routine
def spokes(state):
    """The first rank that a star link leads to, and the one after the last."""
    if is_hub(state):
        return 1, peek(state + layout.COMM_SIZE)
    return 0, 1
