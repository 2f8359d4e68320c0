"""The table of MPI: what one communicator over several nodes keeps beside its state.

Private memory of its process; all words are 64-bit integers, offsets are in bytes. A *leader* is
the first rank of a node; leader k speaks for node k. Node-major order is the ranks of node 0
ascending, then those of node 1, and so on.

    word            meaning
    HANDLE_BYTES    width of a handle in this MPI: 4 or 8
    WORLD, LEADERS  handles of the communicators of all ranks, and of the leaders (leaders only)
    BYTE            handle of MPI_BYTE
    IN_PLACE, ANY_SOURCE    MPI's constants
    STATUS          address of a scratch MPI_Status
    FLAG            a C int that MPI writes
    REQUEST         a request
    HAS_LARGE       1: the functions with counts of 64 bits are there
    LOCAL           address of the state of this rank among those of its node (shared memory)
    NODES, NODE     number of nodes, and this one
    WIDEST          ranks of the node that has most; 1: the communicator is *flat*
    STAGE           address of the stage, memory that the ranks of the node share (see below)
    HALF_BYTES      bytes of data in each half of the stage, the same on all nodes
    ROUNDS          how many rounds (round.py) there have been; its parity chooses the half
    ORDER           address: the rank at each place of node-major order
    PLACES          address: the place of each rank
    STARTS          address: the place where each node begins, NODES + 1 words
    NODE_OF         address: the node of each rank
    HEAD, HEADS     addresses: the head that this leader sends, and those of all nodes
    COUNTS          address of four arrays of 64-bit words, one for each rank
    REASONS         address: one word for each rank, why it takes no further part (layout.py)
    NEWS_SEEN       1: REASONS has one
    NEWS_COUNT      how many notices of failure or leave have come
    NEWS_OUT, NEWS_IN   addresses of notices (news.py)
    NEWS_REQUESTS   address: one word for each node
    HEARD           address: one word for each node, 1: its leader has said that it waits here
    ASKED_NS        when this leader asked who is here; 0: not yet
    SMALL_OUT       address of a question or answer
    TELLER          the rank that sent the last notice
    EXCHANGES       how many exchanges among leaders this one has begun
    COMPLETED       and how many it has completed
    TOLD            the fewest that the sender of a notice had completed

    head            FLAG, KIND, LENGTH of the call, 1 in FLAG if the ranks of the node disagree;
                    INLINE_BYTES of payload where the communicator is flat

The stage is the memory that shared-memory collectives of one node use for slots::

    VERDICT  ERROR  WAITED | a record for each rank, in node-major order | even half | odd half

written by the leader; ranks read it after the step that follows.
"""

from cobre_kernels import layout
from cobre_kernels.machine.atomics import peek
from cobre_kernels.machine.routine import routine

HANDLE_BYTES = 0
WORLD = 8
LEADERS = 16
BYTE = 24
IN_PLACE = 32
ANY_SOURCE = 40
STATUS = 48
FLAG = 56
REQUEST = 64
HAS_LARGE = 72
LOCAL = 80
NODES = 88
NODE = 96
WIDEST = 104
STAGE = 112
HALF_BYTES = 120
ROUNDS = 128
ORDER = 136
PLACES = 144
STARTS = 152
NODE_OF = 160
HEAD = 168
HEADS = 176
COUNTS = 184
REASONS = 192
NEWS_SEEN = 200
NEWS_COUNT = 208
NEWS_OUT = 216
NEWS_IN = 224
NEWS_REQUESTS = 232
HEARD = 240
ASKED_NS = 248
SMALL_OUT = 256
TELLER = 264
EXCHANGES = 272
COMPLETED = 280
TOLD = 288
TABLE_BYTES = 296

# Head.
DISAGREEMENT = 0
KIND = 8
LENGTH = 16
PAYLOAD = 32
INLINE_BYTES = 32
HEAD_BYTES = PAYLOAD + INLINE_BYTES
BOND_BYTES = 8  # of the second exchange, whose content says nothing

# Stage.
VERDICT = 0
ERROR = 8
WAITED = 16
RECORDS = layout.LINE_BYTES

LINE_BYTES = 64


def halves_offset(size):
    """Offset of the even half in the stage of a communicator of ``size`` ranks."""
    used = RECORDS + size * layout.RECORD_BYTES
    return -(-used // layout.LINE_BYTES) * layout.LINE_BYTES


def least_half_bytes(size, nodes, widest):
    """Bytes that a half must have: a line for each stripe that a large allreduce keeps there."""
    return LINE_BYTES * (nodes * widest + size + nodes)


@routine
def table_of(state):
    """Address of the table."""
    return peek(state + layout.LINKS)


@routine
def leads(mpi):
    """Whether this rank speaks for its node."""
    return peek(peek(mpi + LOCAL) + layout.RANK) == 0


@routine
def is_flat(mpi):
    """Whether every rank is alone on its node."""
    return peek(mpi + WIDEST) == 1


@routine
def node_size(mpi, node):
    """Number of ranks of a node."""
    starts = peek(mpi + STARTS) + 8 * node
    return peek(starts + 8) - peek(starts)


@routine
def place_of(mpi, rank):
    """Place of a rank in node-major order."""
    return peek(peek(mpi + PLACES) + 8 * rank)


@routine
def half_of(state, mpi):
    """Address of the half of the stage that this round uses."""
    used = RECORDS + peek(state + layout.COMM_SIZE) * layout.RECORD_BYTES
    first = -(-used // layout.LINE_BYTES) * layout.LINE_BYTES
    parity = peek(mpi + ROUNDS) & 1
    return peek(mpi + STAGE) + first + parity * peek(mpi + HALF_BYTES)
