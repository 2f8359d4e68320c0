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
from cobre_kernels.nodes.round import enter_round, gather_round, hand_out
from cobre_kernels.nodes.verbs import Cast

PIECE_BYTES = 2**30  # of one broadcast; MPI counts it in a C int


@kernel(COMM, Broadcast)
def broadcast_body(comm, call):
    """Move piece after piece; an empty broadcast has one round too."""
    piece_bytes = PIECE_BYTES if is_flat(comm) else comm.nodes.half_bytes
    choose_lanes(comm, call.size_bytes)
    note_output(comm, call.buffer, call.size_bytes, call.root, call.size_bytes <= PIECE_BYTES)
    begin = 0
    while True:
        outcome = _piece(comm, call, begin, min(piece_bytes, call.size_bytes - begin))
        begin += piece_bytes
        if outcome != OK or begin >= call.size_bytes or comm.nodes.is_whole != 0:
            if is_large(call.size_bytes):
                store_fence()
            return end_together(comm, outcome, MEETING)


@routine
def _piece(comm, call, begin, length):
    nodes, piece = comm.nodes, call.buffer + begin
    is_direct, is_root = is_flat(comm), comm.rank == call.root
    buffer = piece if is_direct else next_half(nodes)
    if is_root and not is_direct:
        move(buffer, piece, length)
    outcome = _cross(comm, call, (buffer, length), begin == 0)
    takes = not is_root and not is_direct and nodes.is_whole == 0 and nodes.writes != 0
    if outcome == OK and takes:
        copy_out(piece, buffer, length, is_large(call.size_bytes))
    return outcome


@routine
def _cross(comm, call, span, is_first):
    """Go through a round that brings the root's piece, or all at once, to all nodes.

    A small one goes eagerly.
    """
    nodes, root_node, (buffer, length) = comm.nodes, comm.nodes.node_of[call.root], span
    if is_first and length <= nodes.eager_bytes and nodes.lanes_now == 1:
        for node in range(nodes.nodes):
            set_block(nodes, node, length if node == root_node else 0, 0)
        return gather_round(comm, buffer, is_first)
    outcome = enter_round(comm, is_first)
    if outcome == OK and leads(comm):
        if nodes.is_whole != 0:
            buffer, length = call.buffer, call.size_bytes
        before, share = share_of(nodes, length)
        outcome = run(nodes.broadcast, comm, Cast(buffer + before, share, root_node))
    return hand_out(comm, outcome)
