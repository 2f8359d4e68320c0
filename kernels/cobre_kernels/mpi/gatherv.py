"""Gatherv: chunks into the staging buffer, to the root's leader by MPI_Alltoallv, out by the root.

What a node gives is one piece, as in an allgatherv. No other node receives anything.
"""

from cobre_kernels.collective.calls import Gatherv
from cobre_kernels.collective.checks import block_of, largest_block_bytes
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.gather import agreement, expectation, note_count, with_counts
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.atomics import peek, poke
from cobre_kernels.machine.copy import copy_out, is_large, store_fence
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.record import WORD_BYTES
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import calls
from cobre_kernels.mpi.allgatherv import chunk_bytes, part_bytes, put_own_part, sum_parts
from cobre_kernels.mpi.records import is_flat, is_leader, next_half
from cobre_kernels.mpi.round import enter_eager_round, enter_round, hand_out

TOLD_BYTES = 2 * WORD_BYTES  # how many elements a rank sends, and what the root expects


@kernel(COMM, Gatherv)
def gatherv_body(comm, call):
    """Learn the counts in a round of their own, then move chunk after chunk."""
    outcome = _agree(comm, call)
    if outcome != OK:
        return outcome
    call = with_counts(comm, call)
    chunk = chunk_bytes(comm, call)
    for begin in range(0, largest_block_bytes(comm.size, call), chunk):
        outcome = _chunk(comm, call, (begin, chunk))
        if outcome != OK:
            return outcome
    return OK


@routine
def _agree(comm, call):
    half = 0 if is_flat(comm) else next_half(comm.mpi)
    own, expected = _told(comm, comm.rank, half), expectation(comm, call)
    if is_flat(comm):
        own = comm.mpi.header.payload
    poke(own, call.send_count)
    poke(own + WORD_BYTES, expected)
    if is_flat(comm):
        outcome = enter_eager_round(comm, 0, 0)  # the header has it already
    else:
        outcome = enter_round(comm, True)
        if outcome == OK and is_leader(comm):
            calls.put_given_by_node(comm, TOLD_BYTES)
            outcome = calls.allgatherv(comm, half)
    outcome = hand_out(comm, outcome)
    if outcome != OK:
        return outcome
    for rank in range(comm.size):
        note_count(comm, rank, peek(_told(comm, rank, half)))
    return agreement(comm, peek(_told(comm, call.root, half) + WORD_BYTES))


@routine
def _told(comm, rank, half):
    """Return the address of what a rank has told."""
    if is_flat(comm):
        return comm.mpi.headers[rank].payload
    return half + comm.mpi.node_index[rank] * TOLD_BYTES


@routine
def _chunk(comm, call, span):
    half = put_own_part(comm, call, span)
    outcome = enter_round(comm, True)
    if outcome == OK and is_leader(comm):
        outcome = _to_root(comm, call, span, half)
    outcome = hand_out(comm, outcome)
    if outcome == OK and comm.rank == call.root:
        _take_out(comm, call, span, half)
    return outcome


@routine
def _to_root(comm, call, span, half):
    """Give the root's leader the parts that other nodes have put into their halves."""
    mpi, root_node, starts = comm.mpi, comm.mpi.node_of[call.root], comm.mpi.node_starts
    is_target = mpi.own_node == root_node
    own_begin, begin = 0, 0
    for node in range(mpi.nodes):
        length = sum_parts(comm, call, span, (starts[node], starts[node + 1]))
        is_got = is_target and node != mpi.own_node
        calls.put_given(comm, node, 0, 0)
        calls.put_got(comm, node, length if is_got else 0, begin)
        if node == mpi.own_node:
            own_begin = begin
        begin += length
    if not is_target:
        own_bytes = sum_parts(comm, call, span, (starts[mpi.own_node], starts[mpi.own_node + 1]))
        calls.put_given(comm, root_node, own_bytes, own_begin)
    return calls.alltoallv(comm, half, half)


@routine
def _take_out(comm, call, span, half):
    """Copy every rank's part to its block."""
    offset, streams = 0, is_large(call.recv_count * call.itemsize)
    for index in range(comm.size):
        rank = comm.mpi.node_order[index]
        length = part_bytes(call, rank, span)
        if length > 0:
            copy_out(block_of(call, rank) + span[0], half + offset, length, streams)
        offset += length
    if streams:
        store_fence()
