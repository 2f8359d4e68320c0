"""The record of a communicator over several nodes, and functions that read it.

The first rank of node k, its leader, speaks for node k. In each further *lane* (``lanes.py``)
another rank of node k leads the node. A communicator is *flat* if every rank is alone on its node.
Collectives on one node keep their slots in collective buffers; with several nodes the same memory
is the *staging buffer*, which has these parts::

    for each lane: STAGING, with a failure record for each node index | even half | odd half
"""

from cobre_kernels.collective.comm import FAILURE
from cobre_kernels.collective.reduction.fold import FOLD_BLOCK_BYTES
from cobre_kernels.collective.waiting.pulse import PULSE
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.record import (
    LINE_BYTES,
    Record,
    memory,
    own_rows,
    part,
    pointer,
    rows,
    shared,
    table,
    word,
)

HEADER_ROOM_BYTES = 32
HEADER_LINE_BYTES = 64
STRIPE_LINE_BYTES = 64
LEAST_PIECE_BYTES = 128 * 1024  # the least of a long payload that a chain passes on in one piece

# Bits of a leader's marks.
DIFFERS = 1
TAKES_WHOLE = 2

# How a leader waits for another one: for its bytes, or for those that others pass on from it.
AWAITED, BEHIND = 1, 2

# Tables of the Nodes record that have a word for each node.
TABLES_BY_NODE = (
    "landing", "block_bytes", "block_at", "send_bytes", "send_at", "recv_bytes", "recv_at",
)  # fmt: skip

LEADER_HEADER = Record(
    "LeaderHeader",
    "The call of a leader's node when a round begins; every other leader gets a copy.",
    line_bytes=HEADER_LINE_BYTES,
    marks=word("DIFFERS: the ranks of this node disagree; TAKES_WHOLE: see outputs.py"),
    signature=word("signature of this leader's call"),
    compared=word("the other word of its call that ranks compare"),
    came=word("when its last rank came, and which one (arrival.py)"),
    payload=memory(
        HEADER_ROOM_BYTES, "room for an eager payload, where the transport puts it there"
    ),
)

STAGING = Record(
    "Staging",
    "Of one lane: the rank that leads there writes it, the ranks of its node read it after the next"
    " step.",
    line_bytes=LINE_BYTES,
    status=shared("how the round ended between the leaders"),
    mpi_error=shared("the code that MPI gave"),
    waited_ns=shared("how long the leader had waited"),
    came=shared("ticks when the last rank of another node had come; 0: none was waited for"),
    last=shared("which rank that was"),
    is_whole=shared("1: the whole result is in the outputs of all nodes"),
    pulse=part(PULSE, "of the rank that leads there"),
    failures=own_rows(FAILURE, "one for each rank, in node order", begins_line=True),
)

LANE = Record(
    "Lane",
    "A lane, as every rank of a node knows it.",
    staging=pointer("Staging", "shared words in the staging buffer"),
)

LEADER = Record(
    "Leader",
    "The state of another leader, as far as this one knows (messages.py).",
    condition=word("PRESENT, or why it takes no further part"),
    completed=word("how many verbs it had completed then"),
    heard_ns=word("when it last told that it waits"),
    is_awaited=word("AWAITED, or BEHIND another one, as far as the transport knows; or 0"),
)

NODES = Record(
    "Nodes",
    "The nodes of one communicator, beside its own record; private memory.",
    step_kernel=word("a step of this node (shm/step.py), by address"),
    enter_round_kernel=word("the kernel of round.py, by address"),
    hand_out_kernel=word("the kernel of round.py, by address"),
    # The transport (verbs.py).
    exchange=word("verb, by address; likewise the next six"),
    allgatherv=word("of parts that lie in one buffer"),
    broadcast=word("of one leader's buffer"),
    alltoallv=word("of parts that differ"),
    chain=word("of folds; 0: there is none"),
    post=word("sends a control message; 0: this rank reaches no leader"),
    read=word("reads the control messages that have come"),
    eager_bytes=word("largest payload of a node that travels behind its header"),
    can_leave=word("1: every verb can be left"),
    sees_bytes=word("1: a wait begins anew when bytes move"),
    reach_bytes=word("farthest end of a part in the buffer of allgatherv"),
    # The nodes.
    nodes=word("number of nodes"),
    own_node=word("number of this node"),
    widest=word("ranks of the node that has most; 1: the communicator is flat"),
    is_ordered=word("1: the node index of each rank is its number"),
    node_order=table("the rank at each node index"),
    node_index=table("the node index of each rank"),
    node_starts=table("the node index at which each node begins, and where the last one ends"),
    node_of=table("the node of each rank"),
    # The lanes (lanes.py).
    lanes=word("number of lanes"),
    lane=word("the lane in which this rank leads its node; of any other rank, 0"),
    lanes_now=word("lanes of the collective under way: all of them, or 1"),
    of_lane=rows("Lane", "one for each lane"),
    # The staging buffer.
    halves=word("address of its even half"),
    half_bytes=word("bytes of a half, the same on all nodes"),
    rounds=word("rounds that used a half; the parity chooses it"),
    # Where the ranks of this node receive (outputs.py).
    output_mark=word("IN_REGION: this rank shows its output in the step that it enters next; or 0"),
    output=word("address of this rank's output"),
    output_bytes=word("how far a rank writes in its output; the same on all ranks"),
    first_writer=word("rank of this node that writes if it has the same output as others"),
    outputs=word("PRIVATE, APART or MEETING (shm/region.py)"),
    writes=word("1: this rank writes its output; 0: another one does, which has the same"),
    takes_whole=word("1: the leader can move the whole result from and to its output"),
    is_whole=word("1: all leaders can, and so they have, if the collective has succeeded"),
    # The protocol among leaders (protocol.py, messages.py).
    state=word("OUTSIDE, ENTERED, PREPARED, MOVING, COMMITTED or ENDED"),
    begun=word("verbs that this leader has begun"),
    completed=word("verbs that it has completed"),
    leaders=rows("Leader", "one for each node"),
    losses=word("how often it has learnt that a leader takes no further part"),
    reports=word("failure reports that have come"),
    reported=word("the fewest verbs that one of their senders had completed"),
    reporter=word("the rank that sent that one"),
    reasons=table("why each rank takes no further part, by the reports"),
    has_told=word("1: this rank has sent its report, or its goodbye"),
    report=word("kernel that sends the report, by address"),
    report_words=word("address of a word for each rank: the reason that this one reports"),
    raised_told=word("exceptions of its journal that it has told"),
    raised_words=word("address of the words of an exception that it tells"),
    # What leaders exchange.
    header=pointer("LeaderHeader", "the header that this leader sends"),
    headers=rows("LeaderHeader", "the headers of all leaders"),
    landing=table("where the eager payload of each node goes"),
    block_bytes=table("allgatherv: bytes of each node's block"),
    block_at=table("and where it lies in the buffer"),
    send_bytes=table("alltoallv: bytes that this leader sends to each leader"),
    send_at=table("and where they lie"),
    recv_bytes=table("alltoallv, exchange: bytes that come from each leader"),
    recv_at=table("alltoallv: where they go"),
    calls=rows("Failure", "the call of each rank, in node order, where they disagree"),
    accumulator=memory(FOLD_BLOCK_BYTES, "for folds into memory that other ranks fold into"),
)


def staging_bytes(size):
    """Return the bytes of a lane's shared words in a communicator of ``size`` ranks."""
    used = STAGING.offsets["failures"] + size * FAILURE.size_bytes
    return -(-used // LINE_BYTES) * LINE_BYTES


def least_half_bytes(size, nodes, widest, lanes):
    """Return the least bytes of a half: one line for each stripe of a large allreduce."""
    return STRIPE_LINE_BYTES * lanes * (nodes * widest + size + nodes)


@routine
def speaks_for_node(comm):
    """Tell whether this rank is the leader of its node."""
    return comm.node.rank == 0


@routine
def leads(comm):
    """Tell whether this rank leads its node in a lane of the collective under way."""
    return comm.node.rank < comm.nodes.lanes_now


@routine
def has_lane(comm):
    """Tell whether this rank leads its node in a lane, even if this collective does not use it."""
    return comm.node.rank < comm.nodes.lanes


@routine
def is_flat(comm):
    """Tell whether every rank is alone on its node."""
    return comm.nodes.widest == 1


@routine
def is_pair(comm):
    """Tell whether there are two ranks, each alone on its node."""
    return is_flat(comm) and comm.nodes.nodes == 2


@routine
def leader_of(nodes, node):
    """Return the rank that leads a node in this rank's lane."""
    return nodes.node_order[nodes.node_starts[node] + nodes.lane]


@routine
def own_staging(nodes):
    """Return the shared words of this rank's lane."""
    return nodes.of_lane[nodes.lane].staging


@routine
def node_rank_of(nodes, rank):
    """Return the number of a rank among those of its node."""
    return nodes.node_index[rank] - nodes.node_starts[nodes.node_of[rank]]


@routine
def ranks_of(nodes, node):
    """Return the number of ranks of a node."""
    return nodes.node_starts[node + 1] - nodes.node_starts[node]


@routine
def next_half(nodes):
    """Return the address of the half of the staging buffer that this round uses."""
    nodes.rounds += 1
    return nodes.halves + (nodes.rounds & 1) * nodes.half_bytes


@routine
def set_block(nodes, node, size_bytes, displacement):
    """Set the block of a node in the buffer of an allgatherv."""
    nodes.block_bytes[node] = size_bytes
    nodes.block_at[node] = displacement


@routine
def longest_block(nodes):
    """Return the bytes of the longest block in the buffer of an allgatherv."""
    longest = 0
    for node in range(nodes.nodes):
        longest = max(longest, nodes.block_bytes[node])
    return longest


@routine
def set_send(nodes, node, size_bytes, displacement):
    """Set how much this leader sends to another one in an alltoallv, and from where."""
    nodes.send_bytes[node] = size_bytes
    nodes.send_at[node] = displacement


@routine
def set_recv(nodes, node, size_bytes, displacement):
    """Set how much comes from a leader in an alltoallv, and where it goes."""
    nodes.recv_bytes[node] = size_bytes
    nodes.recv_at[node] = displacement


@routine
def set_blocks_by_rank(nodes, bytes_per_rank):
    """Set the blocks of all nodes in node order, if every rank gives ``bytes_per_rank`` bytes."""
    for node in range(nodes.nodes):
        size_bytes = ranks_of(nodes, node) * bytes_per_rank
        set_block(nodes, node, size_bytes, nodes.node_starts[node] * bytes_per_rank)
