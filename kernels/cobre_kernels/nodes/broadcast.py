"""Broadcast: the root's chunk into its staging buffer, to all leaders, out of every buffer.

On a flat communicator the transport moves it straight from buffer to buffer. So do leaders where
the buffers of each node are one memory, a region (``outputs.py``).
"""

from cobre_kernels.collective.calls import Broadcast
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import copy_out, is_large, move, store_fence
from cobre_kernels.machine.kernel import kernel, run
from cobre_kernels.nodes.lanes import choose_lanes, share_of
from cobre_kernels.nodes.outputs import end_together, note_output
from cobre_kernels.nodes.records import MEETING, is_flat, leads, next_half, set_block
from cobre_kernels.nodes.round import enter_round, gather_round, hand_out
from cobre_kernels.nodes.verbs import Cast

PIECE_BYTES = 2**30  # of one broadcast; MPI counts it in a C int


@kernel(COMM, Broadcast)
def broadcast_body(comm, call):
    """Move piece after piece; an empty broadcast has one round too."""
    piece_bytes = PIECE_BYTES if is_flat(comm) else comm.nodes.half_bytes
    choose_lanes(comm, call.size_bytes)
    note_output(comm, call.buffer, call.size_bytes, call.root, call.size_bytes <= PIECE_BYTES)
    begin, before = 0, (0, 0, 0)
    while True:
        length = min(piece_bytes, call.size_bytes - begin)
        outcome, buffer = _piece(comm, call, (begin, length), before)
        before = (begin, length, buffer)
        begin += piece_bytes
        if outcome != OK or begin >= call.size_bytes or comm.nodes.is_whole != 0:
            break
    if outcome == OK and comm.nodes.is_whole == 0:
        _take(comm, call, before)
    if is_large(call.size_bytes):
        store_fence()
    return end_together(comm, outcome, MEETING)


@routine
def _piece(comm, call, span, before):
    """Go through the round of a piece; return how it has ended, and where the piece is.

    While leaders move it, ranks take the piece before. A small payload goes eagerly, as the block
    of the root's node.
    """
    nodes, root_node, (begin, length) = comm.nodes, comm.nodes.node_of[call.root], span
    piece = call.buffer + begin
    buffer = piece if is_flat(comm) else next_half(nodes)
    if comm.rank == call.root and not is_flat(comm):
        move(buffer, piece, length)
    if begin == 0 and length <= nodes.eager_bytes and nodes.lanes_now == 1:
        for node in range(nodes.nodes):
            set_block(nodes, node, length if node == root_node else 0, 0)
        return gather_round(comm, buffer, True), buffer
    outcome = enter_round(comm, begin == 0)
    if outcome == OK and leads(comm):
        outcome = _cast(comm, call, root_node, (buffer, length))
    if outcome == OK:
        _take(comm, call, before)
    return hand_out(comm, outcome), buffer


@routine
def _cast(comm, call, root_node, span):
    """As a leader, move this lane's share of a piece, or of all at once."""
    buffer, length = span
    if comm.nodes.is_whole != 0:
        buffer, length = call.buffer, call.size_bytes
    first, share = share_of(comm.nodes, length)
    return run(comm.nodes.broadcast, comm, Cast(buffer + first, share, root_node))


@routine
def _take(comm, call, piece):
    """Copy a piece out, unless it is in place, or another rank of the node has the same output."""
    begin, length, source = piece
    target = call.buffer + begin
    if comm.rank != call.root and comm.nodes.writes != 0 and source != target and length > 0:
        copy_out(target, source, length, is_large(call.size_bytes))
