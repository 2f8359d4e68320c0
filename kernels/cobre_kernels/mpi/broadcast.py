"""Broadcast: the root's chunk into its staging buffer, across by MPI_Bcast, out of every one.

On a flat communicator MPI_Bcast goes straight from buffer to buffer; a few bytes travel with the
headers.
"""

from cobre_kernels.collective.calls import Broadcast
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.copy import copy_out, is_large, move, store_fence
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import calls
from cobre_kernels.mpi.records import EAGER_BYTES, is_flat, is_leader, next_half
from cobre_kernels.mpi.round import enter_eager_round, enter_round, hand_out

PIECE_BYTES = 2**30  # of one MPI_Bcast, whose count is a C int


@kernel(COMM, Broadcast)
def broadcast_body(comm, call):
    """Choose one of the three ways."""
    if not is_flat(comm):
        return _staged(comm, call)
    if call.size_bytes <= EAGER_BYTES:
        return _eager(comm, call)
    return _direct(comm, call)


@routine
def _eager(comm, call):
    outcome = hand_out(comm, enter_eager_round(comm, call.buffer, call.size_bytes))
    if outcome == OK and comm.rank != call.root:
        move(call.buffer, comm.mpi.headers[call.root].payload, call.size_bytes)
    return outcome


@routine
def _direct(comm, call):
    """Move piece after piece; the number of the root is that of its node."""
    for begin in range(0, call.size_bytes, PIECE_BYTES):
        outcome = enter_round(comm, True)
        if outcome == OK:
            piece = min(call.size_bytes - begin, PIECE_BYTES)
            outcome = calls.bcast(comm, call.buffer + begin, piece, call.root)
        outcome = hand_out(comm, outcome)
        if outcome != OK:
            return outcome
    return OK


@routine
def _staged(comm, call):
    chunk = comm.mpi.half_bytes
    begin = 0
    while True:
        length = min(chunk, call.size_bytes - begin)
        outcome = _chunk(comm, call, call.buffer + begin, length)
        begin += chunk
        if outcome != OK or begin >= call.size_bytes:
            if is_large(call.size_bytes):
                store_fence()
            return outcome


@routine
def _chunk(comm, call, chunk, length):
    """Move one chunk; an empty broadcast has one round too, without data."""
    half = next_half(comm.mpi)
    is_root = comm.rank == call.root
    if is_root:
        move(half, chunk, length)
    outcome = enter_round(comm, length > 0)
    if outcome == OK and length > 0 and is_leader(comm):
        outcome = calls.bcast(comm, half, length, comm.mpi.node_of[call.root])
    outcome = hand_out(comm, outcome)
    if outcome == OK and not is_root:
        copy_out(chunk, half, length, is_large(call.size_bytes))
    return outcome
