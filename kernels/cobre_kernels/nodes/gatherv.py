"""Gatherv: ranks copy chunks to the staging buffer, leaders send them, the root copies them out.

On a flat communicator over sockets, bytes go straight from buffer to buffer.

In the staging buffer the chunks of a node are one piece, as in an allgatherv. Only the root's node
receives. If the root receives in a region, the ranks of its node share this memory, so they return
together with the root.
"""

from cobre_kernels.collective.calls import Gatherv
from cobre_kernels.collective.checks import block_of, largest_block_bytes
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.gather import agreement, expectation, note_count, with_counts
from cobre_kernels.collective.regions import NOWHERE, OutputMemory
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.atomics import peek, poke
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel, run
from cobre_kernels.machine.record import WORD_BYTES
from cobre_kernels.nodes.allgatherv import (
    part_bytes,
    parts_by_node,
    put_part,
    sum_parts,
    take_parts,
)
from cobre_kernels.nodes.broadcast import PIECE_BYTES
from cobre_kernels.nodes.lanes import choose_lanes, share_blocks
from cobre_kernels.nodes.outputs import end_together, note_output
from cobre_kernels.nodes.records import (
    is_flat,
    leads,
    next_half,
    set_blocks_by_rank,
    set_recv,
    set_send,
)
from cobre_kernels.nodes.round import Chunk, enter_round, gather_round, hand_out
from cobre_kernels.nodes.verbs import Scatter
from cobre_kernels.shm.region import APART

TOLD_BYTES = 2 * WORD_BYTES  # two words: how many elements a rank sends, and the root's expectation


@kernel(COMM, Gatherv)
def gatherv_body(comm, call):
    """Learn the counts in a separate round, then move chunk after chunk."""
    output_bytes = call.recv_count * call.itemsize if comm.rank == call.root else 0
    note_output(comm, OutputMemory(call.recv, output_bytes, NOWHERE, 0), call.root)
    outcome = _agree(comm, call)
    if outcome != OK:
        return outcome
    call = with_counts(comm, call)
    largest = largest_block_bytes(comm.size, call)
    choose_lanes(comm, sum_parts(comm, call, Chunk(0, largest, 0, 0), (0, comm.size)))
    # Not over MPI, because MPI could write to the root's buffer after this rank has left its wait.
    is_direct = is_flat(comm) and comm.nodes.can_leave != 0
    begin = 0
    while begin < largest and outcome == OK:
        chunk = Chunk(begin, PIECE_BYTES, 0, 0) if is_direct else put_part(comm, call, begin)
        # Lanes that took no part in the round for the counts agree now.
        outcome, _ = enter_round(comm, chunk, begin == 0 and comm.nodes.lanes_now > 1)
        if outcome == OK and is_direct:
            outcome = _move_directly(comm, call, chunk)
        elif outcome == OK and leads(comm):
            outcome = _to_root(comm, call, chunk)
        outcome = hand_out(comm, outcome)
        if outcome == OK and comm.rank == call.root and not is_direct:
            take_parts(comm, call, chunk)
        begin += chunk.length
    return end_together(comm, outcome, APART)


@routine
def _agree(comm, call):
    half = next_half(comm.nodes)
    own = _told(comm, comm.rank, half)
    poke(own, call.send_count)
    poke(own + WORD_BYTES, expectation(comm, call))
    set_blocks_by_rank(comm.nodes, TOLD_BYTES)
    outcome = gather_round(comm, call, half)
    if outcome != OK:
        return outcome
    for rank in range(comm.size):
        note_count(comm, rank, peek(_told(comm, rank, half)))
    return agreement(comm, peek(_told(comm, call.root, half) + WORD_BYTES))


@routine
def _told(comm, rank, half):
    """Return the address of the two words that a rank has written."""
    return half + comm.nodes.node_index[rank] * TOLD_BYTES


@routine
def _move_directly(comm, call, chunk):
    """Move a part of each block straight from buffer to buffer, on a flat communicator."""
    nodes, is_root = comm.nodes, comm.rank == call.root
    begin, own_bytes = chunk.begin, part_bytes(call, comm.rank, chunk)
    for rank in range(comm.size):
        comes = part_bytes(call, rank, chunk) if is_root and rank != call.root else 0
        set_recv(nodes, rank, comes, block_of(call, rank) + begin if comes > 0 else 0)
        set_send(nodes, rank, own_bytes if rank == call.root and not is_root else 0, begin)
    outcome = run(nodes.alltoallv, comm, Scatter(call.send, 0))
    if outcome == OK and is_root and block_of(call, comm.rank) != call.send:
        move(block_of(call, comm.rank) + begin, call.send + begin, own_bytes)
    return outcome


@routine
def _to_root(comm, call, chunk):
    """Give the root's leader the parts that other nodes have put into their halves."""
    nodes, root_node = comm.nodes, comm.nodes.node_of[call.root]
    is_target = nodes.own_node == root_node
    parts_by_node(comm, call, chunk)
    share_blocks(nodes)
    own_bytes, own_begin = nodes.block_bytes[nodes.own_node], nodes.block_at[nodes.own_node]
    for node in range(nodes.nodes):
        comes = nodes.block_bytes[node] if is_target and node != root_node else 0
        set_recv(nodes, node, comes, nodes.block_at[node])
        goes = own_bytes if node == root_node and not is_target else 0
        set_send(nodes, node, goes, own_begin)
    # The root's leader sends nothing, the other leaders receive nothing. One address for sending
    # and receiving is forbidden by MPI, and Open MPI takes it for MPI_IN_PLACE.
    nothing = nodes.header.address
    half = chunk.buffer
    ends = Scatter(nothing, half) if is_target else Scatter(half, nothing)
    return run(nodes.alltoallv, comm, ends)
