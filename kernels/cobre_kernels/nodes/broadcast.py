"""Broadcast: the root copies to the staging buffer, leaders move the chunk, ranks copy it out.

On a flat communicator the transport moves the chunk straight from buffer to buffer. If the buffers
of each node are the same bytes of a region, leaders move the payload from region to region
(``outputs.py``).
"""

from cobre_kernels.collective.calls import Broadcast
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.regions import NOWHERE, OutputMemory
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import copy_out, is_large, move, store_fence
from cobre_kernels.machine.kernel import kernel, run
from cobre_kernels.nodes.lanes import choose_lanes, share_of
from cobre_kernels.nodes.outputs import note_output
from cobre_kernels.nodes.records import is_flat, next_half, set_block
from cobre_kernels.nodes.round import Chunk, in_rounds
from cobre_kernels.nodes.verbs import Cast

PIECE_BYTES = 2**30  # the most bytes of one broadcast by a transport; MPI counts them in a C int


@kernel(COMM, Broadcast)
def broadcast_body(comm, call):
    """Move chunk after chunk, each in a round; an empty broadcast also has one round."""
    choose_lanes(comm, call.size_bytes)
    send = call.buffer if call.size_bytes <= PIECE_BYTES else NOWHERE
    note_output(comm, OutputMemory(call.buffer, call.size_bytes, send, 0), call.root)
    return in_rounds(comm, call, call.size_bytes, _put, _cast, _take)


@routine
def _put(comm, call, begin):
    """As the root, put the chunk into the half; a small chunk is a block that is sent eagerly."""
    nodes = comm.nodes
    length = min(PIECE_BYTES if is_flat(comm) else nodes.half_bytes, call.size_bytes - begin)
    buffer = call.buffer + begin if is_flat(comm) else next_half(nodes)
    if comm.rank == call.root and not is_flat(comm):
        move(buffer, call.buffer + begin, length)
    if begin > 0 or length > nodes.eager_bytes or nodes.lanes_now > 1:
        return Chunk(begin, length, buffer, 0)
    for node in range(nodes.nodes):
        set_block(nodes, node, length if node == nodes.node_of[call.root] else 0, 0)
    return Chunk(begin, length, buffer, 1)


@routine
def _cast(comm, call, chunk):
    """As a leader, move this lane's share of a chunk."""
    first, share = share_of(comm.nodes, chunk.length)
    root_node = comm.nodes.node_of[call.root]
    return run(comm.nodes.broadcast, comm, Cast(chunk.buffer + first, share, root_node))


@routine
def _take(comm, call, chunk):
    """Copy a chunk out, unless it is in place."""
    target, streams = call.buffer + chunk.begin, is_large(call.size_bytes)
    if comm.rank != call.root and chunk.buffer != target:
        copy_out(target, chunk.buffer, chunk.length, streams)
        if streams:
            store_fence()
