"""Lanes: several ranks of a node move data between nodes, each a share, over links of its own.

Lane j joins the ranks that have number j on their nodes: each leads its node there. A lane has the
protocol of leaders for itself: links, headers, reports, verbs. So a round with several lanes is
that of one leader, several times at once. Each lane agrees, moves its share of every block, and
ends in its own way. What differs is where the ranks of a node meet: they await the ranks that lead
in any lane, and if one lane has failed, the round has failed (``outcome.py``).

One leader moves about 2.5 GB a second, because TCP of the kernel copies. Lanes fill a faster cable,
and in an allreduce they share the folds. Small payloads take one lane: a lane costs an exchange.
"""

from cobre_kernels.machine.compiled import routine
from cobre_kernels.nodes.records import STRIPE_LINE_BYTES, set_block

LEAST_SHARE_BYTES = 256 * 1024  # of a payload; a smaller share costs more headers than it wins


@routine
def choose_lanes(comm, size_bytes):
    """Choose how many lanes a collective takes, by bytes that are the same on all ranks."""
    nodes = comm.nodes
    nodes.lanes_now = lanes_for(nodes.lanes, size_bytes, nodes.half_bytes)


@routine
def lanes_for(lanes, size_bytes, half_bytes):
    """Return how many of so many lanes a payload takes: all, if it is long, or has many rounds."""
    return lanes if size_bytes >= min(lanes * LEAST_SHARE_BYTES, half_bytes) else 1


@routine
def share_of(nodes, size_bytes):
    """Return where this lane's share of so many bytes begins, and its length; whole lines."""
    lines = -(-size_bytes // STRIPE_LINE_BYTES)
    begin = min(lines * nodes.lane // nodes.lanes_now * STRIPE_LINE_BYTES, size_bytes)
    end = min(lines * (nodes.lane + 1) // nodes.lanes_now * STRIPE_LINE_BYTES, size_bytes)
    return begin, end - begin


@routine
def share_blocks(nodes):
    """Leave this lane its share of the block of each node."""
    for node in range(nodes.nodes):
        begin, size_bytes = share_of(nodes, nodes.block_bytes[node])
        set_block(nodes, node, size_bytes, nodes.block_at[node] + begin)
