"""Lanes: several ranks of a node move data between nodes, each a share, over links of its own.

Lane j joins the ranks that have number j on their nodes, and each of them leads its node in lane j.
A lane has links, headers, reports and verbs of its own, and runs the protocol of leaders by itself.
So in a round with several lanes, each lane agrees, moves its share of every block, and ends, with
an outcome of its own. The lanes meet when the ranks of a node enter the round and end it. There all
ranks await the ranks that lead in any lane, and if one lane has failed, the round has failed
(``outcome.py``).

One leader moves about 2.5 GB a second, because the kernel's TCP copies each byte. Several lanes
fill a faster cable, and in an allreduce they share the folds. Small payloads take one lane, because
each lane costs an exchange.
"""

from cobre_kernels.machine.compiled import routine
from cobre_kernels.nodes.records import STRIPE_LINE_BYTES, set_block

LEAST_SHARE_BYTES = 256 * 1024  # of a payload; for a smaller share a lane costs more than it saves


@routine
def choose_lanes(comm, size_bytes):
    """Choose how many lanes a collective takes, by a number of bytes that all ranks agree on."""
    nodes = comm.nodes
    nodes.lanes_now = lanes_for(nodes.lanes, size_bytes, nodes.half_bytes)


@routine
def lanes_for(lanes, size_bytes, half_bytes):
    """Return how many of the lanes a payload takes: all if it is long or fills a half, else one."""
    return lanes if size_bytes >= min(lanes * LEAST_SHARE_BYTES, half_bytes) else 1


@routine
def share_of(nodes, size_bytes):
    """Return where this lane's share of so many bytes begins, in whole lines, and its length."""
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
