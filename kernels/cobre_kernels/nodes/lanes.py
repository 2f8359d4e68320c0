"""Lanes: several ranks of a node each move a share of the data between nodes, over their own links.

Lane j joins the ranks that have number j on their nodes; each of them leads its node in lane j. A
lane has links, headers, reports and verbs of its own, and runs the protocol of leaders by itself.
So in a round with several lanes, each lane agrees, moves its share of every block, and ends with an
outcome of its own. The lanes come together when the ranks of a node enter the round and when they
end it. At these moments all ranks wait for the ranks that lead in any lane. If one lane has failed,
the round has failed (``outcome.py``).

One leader moves about 2.5 GB per second, because TCP in the kernel copies each byte. Several lanes
fill a faster cable, and in an allreduce they share the folds. Small payloads use one lane, because
each lane costs an exchange.
"""

from cobre_kernels.machine.compiled import routine
from cobre_kernels.nodes.records import STRIPE_LINE_BYTES, set_block

LEAST_SHARE_BYTES = 256 * 1024  # of a payload; a lane with a smaller share costs more than it saves


@routine
def choose_lanes(comm, size_bytes):
    """Choose how many lanes a collective uses, by a size that is the same on all ranks."""
    nodes = comm.nodes
    nodes.lanes_now = lanes_for(nodes.lanes, size_bytes, nodes.half_bytes)


@routine
def lanes_for(lanes, size_bytes, half_bytes):
    """Return how many lanes a payload uses: all lanes if it is long or fills a half, else one."""
    return lanes if size_bytes >= min(lanes * LEAST_SHARE_BYTES, half_bytes) else 1


@routine
def share_of(nodes, size_bytes):
    """Return where this lane's share of some bytes begins, in whole lines, and its length."""
    lines = -(-size_bytes // STRIPE_LINE_BYTES)
    begin = min(lines * nodes.lane // nodes.lanes_now * STRIPE_LINE_BYTES, size_bytes)
    end = min(lines * (nodes.lane + 1) // nodes.lanes_now * STRIPE_LINE_BYTES, size_bytes)
    return begin, end - begin


@routine
def share_blocks(nodes):
    """Reduce the block of each node to this lane's share of the block."""
    for node in range(nodes.nodes):
        begin, size_bytes = share_of(nodes, nodes.block_bytes[node])
        set_block(nodes, node, size_bytes, nodes.block_at[node] + begin)
