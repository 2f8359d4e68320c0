"""Allgatherv: blocks into the staging buffer, to all leaders, out of every buffer.

Where all blocks are in outputs that are regions, leaders move them from region to region instead
(``outputs.py``). That takes outputs in which the blocks of each node are one piece.

In the staging buffer the ranks' chunks lie close together in node order. The chunks of a node are
therefore one piece, and each byte crosses the network once for each node. On a flat communicator
the transport moves blocks straight from buffer to buffer, if it reaches that far.
"""

from cobre_kernels.collective.calls import Allgatherv
from cobre_kernels.collective.checks import (
    block_of,
    bytes_of,
    largest_block_bytes,
    reach_bytes,
)
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import copy_out, is_large, move, store_fence
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.nodes.lanes import choose_lanes
from cobre_kernels.nodes.outputs import NO_ROOT, end_together, note_output
from cobre_kernels.nodes.records import (
    MEETING,
    STRIPE_LINE_BYTES,
    is_flat,
    leads,
    next_half,
    set_block,
)
from cobre_kernels.nodes.round import begin_gather, gather_round, hand_out, move_parts


@kernel(COMM, Allgatherv)
def allgatherv_body(comm, call):
    """Choose one of the two ways, by the tables: they are the same on all ranks."""
    reach = reach_bytes(comm, call)
    if is_flat(comm) and reach <= comm.nodes.reach_bytes:
        return _direct(comm, call)
    choose_lanes(comm, reach)
    is_in_place = reach <= comm.nodes.reach_bytes and _is_in_place(comm, call)
    note_output(comm, call.recv, reach, NO_ROOT, is_in_place)
    return end_together(comm, _staged(comm, call, is_large(reach)), MEETING)


@routine
def _is_in_place(comm, call):
    """Tell whether this rank's block is, and on a leader also whether nodes have one piece each."""
    if bytes_of(call, comm.rank) > 0 and block_of(call, comm.rank) != call.send:
        return False
    return not leads(comm) or _set_pieces(comm, call)


@routine
def _set_pieces(comm, call):
    """Set the piece of each node in the output; return False if one has several pieces."""
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
    return gather_round(comm, call.recv, True)


@routine
def _staged(comm, call, streams):
    largest = largest_block_bytes(comm.size, call)
    begin, before = 0, (0, 0, 0)
    while True:
        chunk = chunk_bytes(comm, call, begin)
        outcome, half = _chunk(comm, call, (begin, chunk), before, streams)
        before = (begin, chunk, half)
        begin += chunk
        if outcome != OK or begin >= largest or comm.nodes.is_whole != 0:
            break
    if outcome == OK and comm.nodes.is_whole == 0:
        _take(comm, call, before, streams)
    return outcome


@routine
def chunk_bytes(comm, call, begin):
    """Return the bytes of a rank's chunk: ranks that have bytes left from there on share a half."""
    givers = 0
    for rank in range(comm.size):
        givers += 1 if bytes_of(call, rank) > begin else 0
    return share_of_half(comm.nodes.half_bytes, givers)


@routine
def share_of_half(half_bytes, givers):
    """Return the bytes of each of so many chunks that share a half."""
    return half_bytes // max(givers, 1) // STRIPE_LINE_BYTES * STRIPE_LINE_BYTES


@routine
def part_bytes(call, rank, span):
    """Return the bytes of a rank's block that are in this chunk."""
    begin, chunk = span
    return max(min(bytes_of(call, rank) - begin, chunk), 0)


@routine
def sum_parts(comm, call, span, indices):
    """Return the bytes in this chunk of the ranks from one node index to another."""
    first, end = indices
    total = 0
    for index in range(first, end):
        total += part_bytes(call, comm.nodes.node_order[index], span)
    return total


@routine
def put_own_part(comm, call, span):
    """Copy this rank's part into the half of this round; return where that begins."""
    half = next_half(comm.nodes)
    own_bytes = part_bytes(call, comm.rank, span)
    if own_bytes > 0:
        before = sum_parts(comm, call, span, (0, comm.nodes.node_index[comm.rank]))
        move(half + before, call.send + span[0], own_bytes)
    return half


@routine
def parts_by_node(comm, call, span):
    """Set the bytes of each node in this chunk, and where they lie in a half."""
    starts, total = comm.nodes.node_starts, 0
    for node in range(comm.nodes.nodes):
        length = sum_parts(comm, call, span, (starts[node], starts[node + 1]))
        set_block(comm.nodes, node, length, total)
        total += length


@routine
def _chunk(comm, call, span, before, streams):
    """Go through the round of a chunk; return how it has ended, and the half that holds it.

    While leaders move it, ranks take the parts of the chunk before.
    """
    nodes = comm.nodes
    half = put_own_part(comm, call, span)
    parts_by_node(comm, call, span)
    outcome, moves_data = begin_gather(comm, half, span[0] == 0)
    buffer = half
    if leads(comm) and nodes.is_whole != 0:
        buffer = call.recv
        _set_pieces(comm, call)
    outcome = move_parts(comm, buffer, outcome, moves_data)
    if outcome == OK:
        _take(comm, call, before, streams)
    return hand_out(comm, outcome), half


@routine
def _take(comm, call, chunk, streams):
    """Take the parts of a chunk, unless another rank of the node has the same output."""
    begin, length, half = chunk
    if length > 0 and comm.nodes.writes != 0:
        take_parts(comm, call, (begin, length), half, streams)


@routine
def take_parts(comm, call, span, half, streams):
    """Copy every rank's part to its block; this rank's own may be there already."""
    offset = 0
    for index in range(comm.size):
        rank = comm.nodes.node_order[index]
        length = part_bytes(call, rank, span)
        block = block_of(call, rank)
        if length > 0 and not (rank == comm.rank and block == call.send):
            copy_out(block + span[0], half + offset, length, streams)
        offset += length
    if streams:
        store_fence()
