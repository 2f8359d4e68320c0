"""The record of a communicator over several nodes, and functions that read it.

The first rank of node k, its leader, speaks for node k. In each further *lane* (``lanes.py``)
another rank of node k leads the node. A communicator is *flat* if every rank is alone on its node.
On one node, the collective buffers hold the slots of collectives. With several nodes the same
memory is the *staging buffer*, which has these parts::

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
LEAST_PIECE_BYTES = 128 * 1024  # a chain passes a long payload on in pieces of at least this size

# Bits of the word `marks` in a leader's header.
DIFFERS = 1
TAKES_WHOLE = 2

# How a leader waits for another leader: for bytes from it, or for its bytes that others pass on.
AWAITED, BEHIND = 1, 2

# Tables of the Nodes record that have a word for each node.
TABLES_BY_NODE = (
    "landing", "block_bytes", "block_at", "send_bytes", "send_at", "recv_bytes", "recv_at",
)  # fmt: skip

LEADER_HEADER = Record(
    "LeaderHeader",
    "The call of a leader's node when a round begins; every other leader gets a copy.",
    line_bytes=HEADER_LINE_BYTES,
    marks=word("bits: DIFFERS: the ranks of this node disagree; TAKES_WHOLE: see outputs.py"),
    signature=word("signature of this leader's call"),
    compared=word("the second word of this leader's call that ranks compare"),
    came=word("when the last rank of this node arrived, and which rank that was (arrival.py)"),
    payload=memory(HEADER_ROOM_BYTES, "room for an eager payload; not every transport uses it"),
)

STAGING = Record(
    "Staging",
    "The outcome of a round in one lane. The rank that leads its node in the lane writes these"
    " words, and the ranks of the node read them after the next step.",
    line_bytes=LINE_BYTES,
    status=shared("the status with which the round ended between the leaders"),
    mpi_error=shared("the error code that MPI returned"),
    waited_ns=shared("how long the leader had waited in all"),
    came=shared("ticks when the last rank of another node had arrived; 0: there was no wait"),
    last=shared("the rank of another node that arrived last"),
    is_whole=shared("1: the whole result is in the outputs of all nodes"),
    pulse=part(PULSE, "the pulse of the rank that leads its node in this lane"),
    failures=own_rows(FAILURE, "a failure record for each rank, in node order", begins_line=True),
)

LANE = Record(
    "Lane",
    "What every rank of a node knows about one lane.",
    staging=pointer("Staging", "the shared words of this lane, in the staging buffer"),
)

LEADER = Record(
    "Leader",
    "What this leader knows about another leader (messages.py).",
    condition=word("PRESENT, or why the other leader takes no further part"),
    completed=word("how many verbs the other leader had completed when it said why"),
    heard_ns=word("when the other leader's last message arrived that says it waits in this verb"),
    is_awaited=word("AWAITED or BEHIND another leader, as far as the transport knows; else 0"),
)

NODES = Record(
    "Nodes",
    "What a communicator over several nodes has beside its Comm record; private memory.",
    step_kernel=word("address of the kernel of shm/step.py: a step of this node"),
    enter_round_kernel=word("address of the kernel of round.py that enters a round"),
    hand_out_kernel=word("address of the kernel of outcome.py that hands out the outcome"),
    # The transport. Each word holds the address of the kernel of a verb (verbs.py), or is a limit.
    exchange=word("verb: each leader gives a few bytes to every leader"),
    allgatherv=word("verb: gathers parts that lie in one buffer"),
    broadcast=word("verb: sends one leader's buffer to all"),
    alltoallv=word("verb: each leader sends to each leader a part of its own"),
    chain=word("verb: folds along a chain of nodes; 0: the transport has no chain"),
    post=word("verb: sends a control message; 0: this rank reaches no leader"),
    read=word("verb: reads the control messages that have arrived"),
    eager_bytes=word("the largest payload of a node that travels behind the header of that node"),
    can_leave=word("1: a leader can leave its wait in any verb"),
    sees_bytes=word("1: the limit of a wait counts from the last moment at which bytes moved"),
    reach_bytes=word("how far from its beginning a buffer of allgatherv may have parts"),
    # The nodes.
    nodes=word("number of nodes"),
    own_node=word("number of this node"),
    widest=word("number of ranks of the largest node; 1: the communicator is flat"),
    is_ordered=word("1: each rank's node index equals its number"),
    node_order=table("the rank at each node index"),
    node_index=table("the node index of each rank"),
    node_starts=table("the node index at which each node begins, and where the last node ends"),
    node_of=table("the node of each rank"),
    # The lanes (lanes.py).
    lanes=word("number of lanes"),
    lane=word("the lane in which this rank leads its node; 0 for a rank that leads in no lane"),
    lanes_now=word("number of lanes that the collective under way uses: all lanes, or 1"),
    of_lane=rows("Lane", "one for each lane"),
    # The staging buffer.
    halves=word("address of the even half; the odd half follows"),
    half_bytes=word("bytes of a half; the same on all nodes"),
    rounds=word("number of rounds that have used a half; its parity chooses the half"),
    # Where the ranks of this node receive (outputs.py).
    output_mark=word("IN_REGION: this rank shows its output in the step that it enters next; or 0"),
    output=word("address of this rank's output"),
    output_bytes=word("how far ranks write in their outputs; the same on all ranks"),
    first_writer=word("the rank of this node that writes, if its output is that of this rank"),
    outputs=word("how the outputs of this node lie: PRIVATE, APART or MEETING (shm/region.py)"),
    writes=word("1: this rank writes its output; 0: a rank with the same output writes it"),
    takes_whole=word("1: the leader can move the whole result from and to its output"),
    is_whole=word("1: all leaders move the whole result, or have moved it, in this collective"),
    # The protocol among leaders (protocol.py, messages.py).
    state=word("OUTSIDE, ENTERED, PREPARED, MOVING, COMMITTED or ENDED"),
    begun=word("number of verbs that this leader has begun"),
    completed=word("number of verbs that this leader has completed"),
    leaders=rows("Leader", "the state of each node's leader"),
    losses=word("how often this leader has learnt that another leader takes no further part"),
    reports=word("number of failure reports that have arrived"),
    reported=word("the least number of verbs that a sender of these reports had completed"),
    reporter=word("the rank that sent the report with this least number"),
    reasons=table("for each rank, why it takes no further part, as the reports say"),
    has_told=word("1: this rank has sent its failure report, or its goodbye"),
    report=word("address of the kernel that sends the failure report"),
    report_words=word("address of one word for each rank: the reason that this rank reports"),
    raised_told=word("how many exceptions in its journal this rank has told to other leaders"),
    raised_words=word("address of the words of the exception that this rank tells"),
    # What leaders exchange.
    header=pointer("LeaderHeader", "the header that this leader sends"),
    headers=rows("LeaderHeader", "the headers of all leaders"),
    landing=table("address to which the eager payload of each node goes"),
    block_bytes=table("allgatherv: bytes of each node's block"),
    block_at=table("allgatherv: where in the buffer each node's block begins"),
    send_bytes=table("alltoallv: bytes that this leader sends to each leader"),
    send_at=table("alltoallv: where in the buffer the bytes for each leader begin"),
    recv_bytes=table("alltoallv, exchange: bytes that arrive from each leader"),
    recv_at=table("alltoallv: where in the buffer the bytes from each leader go"),
    calls=rows("Failure", "the call of each rank, in node order, if the calls of ranks disagree"),
    accumulator=memory(FOLD_BLOCK_BYTES, "for a fold whose target other ranks may fold into"),
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
    """Return the number of a rank among the ranks of its node."""
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
    """Set how much this leader sends to another leader in an alltoallv, and from where."""
    nodes.send_bytes[node] = size_bytes
    nodes.send_at[node] = displacement


@routine
def set_recv(nodes, node, size_bytes, displacement):
    """Set how much arrives from a leader in an alltoallv, and where it goes."""
    nodes.recv_bytes[node] = size_bytes
    nodes.recv_at[node] = displacement


@routine
def set_blocks_by_rank(nodes, bytes_per_rank):
    """Set the blocks of all nodes in node order, if every rank gives ``bytes_per_rank`` bytes."""
    for node in range(nodes.nodes):
        size_bytes = ranks_of(nodes, node) * bytes_per_rank
        set_block(nodes, node, size_bytes, nodes.node_starts[node] * bytes_per_rank)
