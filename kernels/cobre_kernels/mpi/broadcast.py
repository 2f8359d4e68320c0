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
    """Move piece after piece; an empty broadcast has one round too, without data."""
    if is_flat(comm) and call.size_bytes <= EAGER_BYTES:
        return _eager(comm, call)
    piece_bytes = PIECE_BYTES if is_flat(comm) else comm.mpi.half_bytes
    begin = 0
    while True:
        length = min(piece_bytes, call.size_bytes - begin)
        outcome = _piece(comm, call, call.buffer + begin, length)
        begin += piece_bytes
        if outcome != OK or begin >= call.size_bytes:
            if is_large(call.size_bytes):
                store_fence()
            return outcome


@routine
def _eager(comm, call):
    outcome = hand_out(comm, enter_eager_round(comm, call.buffer, call.size_bytes))
    if outcome == OK and comm.rank != call.root:
        move(call.buffer, comm.mpi.headers[call.root].payload, call.size_bytes)
    return outcome


@routine
def _piece(comm, call, piece, length):
    is_direct, is_root = is_flat(comm), comm.rank == call.root
    buffer = piece if is_direct else next_half(comm.mpi)
    if is_root and not is_direct:
        move(buffer, piece, length)
    outcome = enter_round(comm, length > 0)
    if outcome == OK and length > 0 and is_leader(comm):
        outcome = calls.bcast(comm, buffer, length, comm.mpi.node_of[call.root])
    outcome = hand_out(comm, outcome)
    if outcome == OK and not is_root and not is_direct:
        copy_out(piece, buffer, length, is_large(call.size_bytes))
    return outcome
