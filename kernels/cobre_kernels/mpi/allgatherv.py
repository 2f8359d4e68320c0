"""Allgatherv: blocks into the staging buffer, across by MPI_Allgatherv, out of every one.

In the staging buffer the ranks' chunks lie close together in node order. What a node gives is
therefore one piece, and each byte crosses the network once for each node. On a flat communicator
MPI_Allgatherv goes straight from buffer to buffer, with 64-bit counts if they are needed and the
library has them; a few bytes travel with the headers.
"""

from cobre_kernels.collective.calls import Allgatherv
from cobre_kernels.collective.checks import (
    block_of,
    bytes_of,
    count_of,
    displacement_of,
    largest_block_bytes,
)
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.copy import copy_out, is_large, move, store_fence
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import calls
from cobre_kernels.mpi.records import (
    EAGER_BYTES,
    STRIPE_LINE_BYTES,
    is_flat,
    is_leader,
    next_half,
)
from cobre_kernels.mpi.round import enter_eager_round, enter_round, hand_out


@kernel(COMM, Allgatherv)
def allgatherv_body(comm, call):
    """Choose one of the three ways, by the tables: they are the same on all ranks."""
    if is_flat(comm):
        if largest_block_bytes(comm.size, call) <= EAGER_BYTES:
            return _eager(comm, call)
        if _reach_bytes(comm, call) <= calls.LARGEST_INT or comm.mpi.has_large_counts != 0:
            return _direct(comm, call)
    return _staged(comm, call)


@routine
def _reach_bytes(comm, call):
    """Return where the last block ends; ``recv`` may be longer on some ranks."""
    reach = 0
    for rank in range(comm.size):
        reach = max(reach, count_of(call, rank) + displacement_of(call, rank))
    return reach * call.itemsize


@routine
def _eager(comm, call):
    outcome = hand_out(comm, enter_eager_round(comm, call.send, bytes_of(call, comm.rank)))
    if outcome == OK:
        for rank in range(comm.size):
            move(block_of(call, rank), comm.mpi.headers[rank].payload, bytes_of(call, rank))
    return outcome


@routine
def _direct(comm, call):
    outcome = enter_round(comm, True)
    if outcome == OK:
        own = block_of(call, comm.rank)
        if call.send != own:  # MPI wants all ranks in place, or none; it would copy this as well
            move(own, call.send, bytes_of(call, comm.rank))
        outcome = _gather_blocks(comm, call)
    return hand_out(comm, outcome)


@routine
def _gather_blocks(comm, call):
    needs_large = _reach_bytes(comm, call) > calls.LARGEST_INT
    for rank in range(comm.size):
        length, displacement = bytes_of(call, rank), block_of(call, rank) - call.recv
        if needs_large:
            calls.put_given_large(comm, rank, length, displacement)
        else:
            calls.put_given(comm, rank, length, displacement)
    if needs_large:
        return calls.allgatherv_large(comm, call.recv)
    return calls.allgatherv(comm, call.recv)


@routine
def _staged(comm, call):
    largest = largest_block_bytes(comm.size, call)
    chunk = chunk_bytes(comm, call)
    streams = is_large(_reach_bytes(comm, call))
    begin = 0
    while True:
        outcome = _chunk(comm, call, (begin, chunk), streams)
        begin += chunk
        if outcome != OK or begin >= largest:
            if streams:
                store_fence()
            return outcome


@routine
def chunk_bytes(comm, call):
    """Return the bytes of a rank's chunk: all ranks that give anything share a half."""
    givers = 0
    for rank in range(comm.size):
        givers += 1 if count_of(call, rank) > 0 else 0
    share = comm.mpi.half_bytes // max(givers, 1)
    return share // STRIPE_LINE_BYTES * STRIPE_LINE_BYTES


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
        total += part_bytes(call, comm.mpi.node_order[index], span)
    return total


@routine
def put_own_part(comm, call, span):
    """Copy this rank's part into the half of this round; return where that begins."""
    half = next_half(comm.mpi)
    own_bytes = part_bytes(call, comm.rank, span)
    if own_bytes > 0:
        before = sum_parts(comm, call, span, (0, comm.mpi.node_index[comm.rank]))
        move(half + before, call.send + span[0], own_bytes)
    return half


@routine
def _chunk(comm, call, span, streams):
    half = put_own_part(comm, call, span)
    outcome = enter_round(comm, True)
    if outcome == OK and is_leader(comm):
        outcome = _gather_parts(comm, call, span, half)
    outcome = hand_out(comm, outcome)
    if outcome == OK:
        _take_out(comm, call, span, half, streams)
    return outcome


@routine
def _gather_parts(comm, call, span, half):
    """Give every leader the parts that all nodes have put into their halves."""
    starts = comm.mpi.node_starts
    total = 0
    for node in range(comm.mpi.nodes):
        length = sum_parts(comm, call, span, (starts[node], starts[node + 1]))
        calls.put_given(comm, node, length, total)
        total += length
    return calls.allgatherv(comm, half) if total > 0 else OK


@routine
def _take_out(comm, call, span, half, streams):
    """Copy every rank's part to its block; this rank's own may be there already."""
    offset = 0
    for index in range(comm.size):
        rank = comm.mpi.node_order[index]
        length = part_bytes(call, rank, span)
        block = block_of(call, rank)
        if length > 0 and not (rank == comm.rank and block == call.send):
            copy_out(block + span[0], half + offset, length, streams)
        offset += length
