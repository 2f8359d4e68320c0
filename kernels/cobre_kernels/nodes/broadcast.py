"""Broadcast: the root's chunk into its staging buffer, to all leaders, out of every buffer.

On a flat communicator the transport moves it straight from buffer to buffer. So do leaders where
the buffers of each node are one memory, a region (``outputs.py``).
"""

from cobre_kernels.collective.calls import Broadcast
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.copy import copy_out, is_large, move, store_fence
from cobre_kernels.machine.kernel import kernel, run
from cobre_kernels.machine.routine import routine
from cobre_kernels.nodes.lanes import choose_lanes, share_of
from cobre_kernels.nodes.outputs import end_together, note_output
from cobre_kernels.nodes.records import MEETING, is_flat, leads, next_half, set_block
from cobre_kernels.nodes.round import begin_gather, enter_round, hand_out, move_parts
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

    While leaders move it, ranks take the piece before.
    """
    nodes, (begin, length) = comm.nodes, span
    piece = call.buffer + begin
    buffer = piece if is_flat(comm) else next_half(nodes)
    if comm.rank == call.root and not is_flat(comm):
        move(buffer, piece, length)
    outcome, moves_data, is_gathered = _enter(comm, call, (buffer, length), begin == 0)
    if is_gathered:
        outcome = move_parts(comm, buffer, outcome, moves_data)
    elif outcome == OK and leads(comm):
        if nodes.is_whole != 0:
            buffer, length = call.buffer, call.size_bytes
        first, share = share_of(nodes, length)
        cast = Cast(buffer + first, share, nodes.node_of[call.root])
        outcome = run(nodes.broadcast, comm, cast)
    if outcome == OK:
        _take(comm, call, before)
    return hand_out(comm, outcome), buffer


@routine
def _enter(comm, call, span, is_first):
    """Enter the round; return how, whether data are to move, and if they do as in an allgatherv.

    A small payload goes eagerly, as the block of the root's node.
    """
    nodes, root_node, (buffer, length) = comm.nodes, comm.nodes.node_of[call.root], span
    if not is_first or length > nodes.eager_bytes or nodes.lanes_now > 1:
        return enter_round(comm, is_first), True, False
    for node in range(nodes.nodes):
        set_block(nodes, node, length if node == root_node else 0, 0)
    outcome, moves_data = begin_gather(comm, buffer, is_first)
    return outcome, moves_data, True


@routine
def _take(comm, call, piece):
    """Copy a piece out, unless it is in place, or another rank of the node has the same output."""
    begin, length, source = piece
    target = call.buffer + begin
    if comm.rank != call.root and comm.nodes.writes != 0 and source != target and length > 0:
        copy_out(target, source, length, is_large(call.size_bytes))
