"""The records of a communicator over several nodes, and what is read off them.

Leader k, the first rank of node k, speaks for node k. A communicator is *flat* if every rank is
alone on its node. The memory in which shared-memory collectives keep their slots is the *staging
buffer* here::

    STAGING, with a failure record for each node index | even half | odd half
"""

from cobre_kernels.collective.comm import FAILURE
from cobre_kernels.machine.record import (
    LINE_BYTES,
    Record,
    memory,
    own_rows,
    pointer,
    rows,
    shared,
    table,
    word,
)
from cobre_kernels.machine.routine import routine

EAGER_BYTES = 32
HEADER_LINE_BYTES = 64
STRIPE_LINE_BYTES = 64
BLOCK_BYTES = 8192  # the accumulator of a fold stays in the first-level cache

# Phases of a round; round.py says what leads from one to the next.
OUTSIDE = 0
ENTERED = 1
PREPARED = 2
COMMITTED = 3

HEADER = Record(
    "LeaderHeader",
    "What a leader says of its node in the prepare exchange; MPI copies it to every leader.",
    line_bytes=HEADER_LINE_BYTES,
    differs=word("1: the ranks of this node disagree among themselves"),
    signature=word("what this leader called"),
    length=word("length of its call"),
    came=word("when its last rank came, and which one (arrival.py)"),
    payload=memory(EAGER_BYTES, "an eager payload, where the communicator is flat"),
)

STAGING = Record(
    "Staging",
    "Begins the staging buffer; its leader writes it, its ranks read it after the next step.",
    line_bytes=LINE_BYTES,
    status=shared("how the round ended between the leaders"),
    mpi_error=shared("the code that MPI gave"),
    waited_ns=shared("how long the leader had waited"),
    arrived=shared("ticks when the last rank of another node had come; 0: none was waited for"),
    last=shared("which rank that was"),
    failures=own_rows(FAILURE, "one for each rank, in node order", begins_line=True),
)

REASON = Record("Reason", "One word of a failure report.", reason=word("why a rank is lost"))

MESSAGE = Record(
    "Message",
    "A control message between leaders; a liveness query or answer ends after its sender.",
    kind=word("REPORT, QUERY or ANSWER"),
    sender=word("its rank"),
    completed=word("how many exchanges the sender had completed"),
    reasons=own_rows(REASON, "one for each rank: why it takes no further part"),
)

MPI = Record(
    "Mpi",
    "What one communicator over several nodes keeps beside its own record.",
    enter_round_kernel=word("the kernel of round.py, by address"),
    hand_out_kernel=word("the kernel of round.py, by address"),
    # The library.
    handle_bytes=word("width of a handle: 4 or 8"),
    world=word("handle of the communicator of all ranks"),
    leaders=word("handle of the communicator of the leaders; 0 on a follower"),
    byte=word("handle of MPI_BYTE"),
    in_place=word("MPI_IN_PLACE"),
    any_source=word("MPI_ANY_SOURCE"),
    has_large_counts=word("1: the functions with counts of 64 bits are there"),
    flag=memory(8, "a C int that MPI writes"),
    request=memory(8, "handle of the exchange under way"),
    matched=memory(8, "handle of a message that MPI has matched"),
    status=word("address of an MPI_Status, which is never read"),
    counts=word("address of four arrays of C ints or 64-bit counts, one for each rank"),
    # The nodes.
    node=pointer("Comm", "this rank among those of its node, in shared memory"),
    nodes=word("number of nodes"),
    own_node=word("number of this node"),
    widest=word("ranks of the node that has most; 1: the communicator is flat"),
    node_order=table("the rank at each node index"),
    node_index=table("the node index of each rank"),
    node_starts=table("the node index at which each node begins, and where the last one ends"),
    node_of=table("the node of each rank"),
    # The staging buffer.
    staging=pointer("Staging", "its shared words"),
    halves=word("address of its even half"),
    half_bytes=word("bytes of a half, the same on all nodes"),
    rounds=word("rounds that used a half; the parity chooses it"),
    # Exchanges.
    phase=word("OUTSIDE, ENTERED, PREPARED or COMMITTED"),
    header=pointer("LeaderHeader", "what this leader sends"),
    headers=rows("LeaderHeader", "the headers of all leaders"),
    begun=word("exchanges that this leader has begun"),
    completed=word("exchanges that it has completed"),
    # Control messages.
    reports=word("failure reports and goodbyes that have come"),
    reporter=word("rank that sent the last one"),
    reported=word("the fewest exchanges that a reporter had completed"),
    reasons=table("why each rank takes no further part, by reports"),
    queried_ns=word("when this leader sent liveness queries; 0: not in this wait"),
    answered=table("1 for each node whose leader has answered"),
    report_out=pointer("Message", "the report that this rank sends"),
    query_out=pointer("Message", "the query or answer that this rank sends"),
    message_in=pointer("Message", "the message that this rank receives"),
    sends=word("address of the handle of the last send to each node"),
    accumulator=memory(BLOCK_BYTES, "for folds into memory that other ranks fold into"),
)


def halves_offset(size):
    """Return where the even half begins in the staging buffer of so many ranks."""
    used = STAGING.offsets["failures"] + size * FAILURE.size_bytes
    return -(-used // LINE_BYTES) * LINE_BYTES


def least_half_bytes(size, nodes, widest):
    """Return the bytes that a half must have: a line for each stripe of a large allreduce."""
    return STRIPE_LINE_BYTES * (nodes * widest + size + nodes)


def message_bytes(size):
    """Return the bytes of a failure report in a communicator of so many ranks."""
    return MESSAGE.size_bytes + size * REASON.size_bytes


@routine
def is_leader(comm):
    """Tell whether this rank speaks for its node."""
    return comm.mpi.node.rank == 0


@routine
def is_flat(comm):
    """Tell whether every rank is alone on its node."""
    return comm.mpi.widest == 1


@routine
def ranks_of(mpi, node):
    """Return the number of ranks of a node."""
    return mpi.node_starts[node + 1] - mpi.node_starts[node]


@routine
def next_half(mpi):
    """Return the address of the half of the staging buffer that this round uses."""
    mpi.rounds += 1
    return mpi.halves + (mpi.rounds & 1) * mpi.half_bytes
