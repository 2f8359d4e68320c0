"""Allgatherv: ranks copy blocks to the staging buffer, leaders move them, ranks copy them out.

If all blocks are in place in outputs that are regions, leaders move the blocks from region to
region instead (``outputs.py``). The blocks of each node must then be one piece of the output.

In the staging buffer, the ranks' chunks follow each other in node order without gaps. So the chunks
of a node are one piece, and each byte crosses the network once for each node. On a flat
communicator the transport moves blocks straight from buffer to buffer, if it can reach all of them.
"""

from cobre_kernels.collective.calls import Allgatherv
from cobre_kernels.collective.checks import (
    block_of,
    bytes_of,
    largest_block_bytes,
    reach_bytes,
)
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.regions import NOWHERE, OutputMemory
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import copy_out, is_large, move, store_fence
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.nodes.lanes import choose_lanes
from cobre_kernels.nodes.outputs import NO_ROOT, note_output
from cobre_kernels.nodes.records import (
    STRIPE_LINE_BYTES,
    is_flat,
    leads,
    next_half,
    set_block,
)
from cobre_kernels.nodes.round import Chunk, gather, gather_round, in_rounds


@kernel(COMM, Allgatherv)
def allgatherv_body(comm, call):
    """Choose one of the two ways by the tables, which are the same on all ranks."""
    reach = reach_bytes(comm, call)
    if is_flat(comm) and reach <= comm.nodes.reach_bytes:
        return _direct(comm, call)
    choose_lanes(comm, reach)
    is_in_place = reach <= comm.nodes.reach_bytes and _is_in_place(comm, call)
    send = call.recv if is_in_place else NOWHERE
    note_output(comm, OutputMemory(call.recv, reach, send, 0), NO_ROOT)
    return in_rounds(comm, call, largest_block_bytes(comm.size, call), _put, _gather, take_parts)


@routine
def _is_in_place(comm, call):
    """Tell whether this rank's block is in place and, on a leader, if each node is one piece."""
    if bytes_of(call, comm.rank) > 0 and block_of(call, comm.rank) != call.send:
        return False
    return not leads(comm) or _set_pieces(comm, call)


@routine
def _set_pieces(comm, call):
    """Set the piece of each node in the output; return False if a node has several pieces."""
    nodes = comm.nodes
    for node in range(nodes.nodes):
        begin, length = 0, 0
        for index in range(nodes.node_starts[node], nodes.node_starts[node + 1]):
            rank = nodes.node_order[index]
            size_bytes, block = bytes_of(call, rank), block_of(call, rank) - call.recv
            if size_bytes > 0 and length == 0:
                begin = block
            if size_bytes > 0 and block != begin + length:
                return False
            length += size_bytes
        set_block(nodes, node, length, begin)
    return True


@routine
def _direct(comm, call):
    own = block_of(call, comm.rank)
    if call.send != own:
        move(own, call.send, bytes_of(call, comm.rank))
    for rank in range(comm.size):
        set_block(comm.nodes, rank, bytes_of(call, rank), block_of(call, rank) - call.recv)
    return gather_round(comm, call, call.recv)


@routine
def chunk_bytes(comm, call, begin):
    """Return the bytes of a rank's chunk: ranks with bytes from ``begin`` on share a half."""
    givers = 0
    for rank in range(comm.size):
        givers += 1 if bytes_of(call, rank) > begin else 0
    return share_of_half(comm.nodes.half_bytes, givers)


@routine
def share_of_half(half_bytes, givers):
    """Return the bytes of each chunk, if ``givers`` chunks share a half."""
    return half_bytes // max(givers, 1) // STRIPE_LINE_BYTES * STRIPE_LINE_BYTES


@routine
def part_bytes(call, rank, chunk):
    """Return the bytes of a rank's block that are in this chunk."""
    return max(min(bytes_of(call, rank) - chunk.begin, chunk.length), 0)


@routine
def sum_parts(comm, call, chunk, indices):
    """Return the bytes that the ranks from one node index to another have in this chunk."""
    first, end = indices
    total = 0
    for index in range(first, end):
        total += part_bytes(call, comm.nodes.node_order[index], chunk)
    return total


@routine
def put_part(comm, call, begin):
    """Copy this rank's part of a chunk into the half of this round; return the chunk."""
    chunk = Chunk(begin, chunk_bytes(comm, call, begin), next_half(comm.nodes), 0)
    own_bytes = part_bytes(call, comm.rank, chunk)
    if own_bytes > 0:
        before = sum_parts(comm, call, chunk, (0, comm.nodes.node_index[comm.rank]))
        move(chunk.buffer + before, call.send + begin, own_bytes)
    return chunk


@routine
def parts_by_node(comm, call, chunk):
    """Set the bytes of each node in this chunk, and where these bytes are in a half."""
    starts, total = comm.nodes.node_starts, 0
    for node in range(comm.nodes.nodes):
        length = sum_parts(comm, call, chunk, (starts[node], starts[node + 1]))
        set_block(comm.nodes, node, length, total)
        total += length


@routine
def _put(comm, call, begin):
    """Put this rank's part of a chunk into the half, where it belongs to its node's block."""
    chunk = put_part(comm, call, begin)
    parts_by_node(comm, call, chunk)
    return Chunk(begin, chunk.length, chunk.buffer, 1)


@routine
def _gather(comm, call, chunk):
    """As a leader, gather a chunk, or the whole result if it moves from output to output."""
    if chunk.buffer == call.recv:
        _set_pieces(comm, call)
    return gather(comm, call, chunk)


@routine
def take_parts(comm, call, chunk):
    """Copy every rank's part to its block; the part of this rank may be there already."""
    source, streams = chunk.buffer, is_large(comm.nodes.output_bytes)
    for index in range(comm.size):
        rank = comm.nodes.node_order[index]
        length, block = part_bytes(call, rank, chunk), block_of(call, rank)
        if length > 0 and not (rank == comm.rank and block == call.send):
            copy_out(block + chunk.begin, source, length, streams)
        source += length
    if streams:
        store_fence()
