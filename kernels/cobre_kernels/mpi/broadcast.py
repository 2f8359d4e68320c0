"""Broadcast: the root's chunk into its node's stage, across by MPI_Bcast, out of every stage.

Where every rank is alone on its node, MPI_Bcast goes straight from buffer to buffer.
"""

from cobre_kernels import layout, libc
from cobre_kernels.arguments import check_broadcast
from cobre_kernels.collective.guard import enter as claim
from cobre_kernels.collective.guard import leave
from cobre_kernels.collective.status import OK
from cobre_kernels.kind import BROADCAST, pack_kind
from cobre_kernels.machine.atomics import peek
from cobre_kernels.machine.copy import is_large, move, move_out, settle
from cobre_kernels.machine.kernel import address_of, kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import calls, table
from cobre_kernels.mpi.round import finish, judge, may_go_on, next_half
from cobre_kernels.mpi.shared import agree, agree_with, enter, hand_out, meet
from cobre_kernels.mpi.table import is_flat, leads, table_of

PIECE_BYTES = 2**30  # of one MPI_Bcast, whose count is a C int


@kernel(arguments=4)
def broadcast_kernel(state, buffer, size_bytes, dtype, root):
    """The bytes at ``buffer`` become the root's."""
    state = address_of(state)
    outcome = claim(state)
    if outcome != OK:
        return outcome
    outcome = check_broadcast(state, root)
    if outcome != OK:
        leave(state)
        return outcome
    kind = pack_kind(BROADCAST, dtype, root)
    mpi = table_of(state)
    thread = libc.release_gil()
    if is_flat(mpi) and size_bytes <= table.INLINE_BYTES:
        outcome = _with_heads(state, mpi, buffer, size_bytes, kind, root)
    elif is_flat(mpi):
        outcome = _direct(state, mpi, buffer, size_bytes, kind, root)
    else:
        outcome = _staged(state, mpi, buffer, size_bytes, kind, root)
    libc.regain_gil(thread)
    return finish(state, mpi, outcome, kind)


@routine
def _with_heads(state, mpi, buffer, size_bytes, kind, root):
    """So few bytes that they travel with the heads, of a flat communicator."""
    outcome = enter(state, mpi, kind, size_bytes, size_bytes)
    if not may_go_on(outcome):
        return outcome
    outcome = agree_with(state, mpi, outcome, kind, size_bytes, buffer, size_bytes, False)
    outcome = hand_out(state, mpi, outcome)
    if outcome == OK and peek(state + layout.RANK) != root:
        move(buffer, peek(mpi + table.HEADS) + root * table.HEAD_BYTES + table.PAYLOAD, size_bytes)
    return outcome


@routine
def _direct(state, mpi, buffer, size_bytes, kind, root):
    done = 0
    while True:
        outcome = meet(state, mpi, kind, size_bytes, size_bytes, size_bytes > 0)
        piece = min(size_bytes - done, PIECE_BYTES)
        if outcome == OK and piece > 0:
            outcome = judge(state, calls.bcast(mpi, buffer + done, piece, root))
        done += piece
        if outcome != OK or done >= size_bytes:
            return outcome


@routine
def _staged(state, mpi, buffer, size_bytes, kind, root):
    chunk = peek(mpi + table.HALF_BYTES)
    begin = 0
    while True:
        length = min(chunk, size_bytes - begin)
        outcome = _chunk(state, mpi, buffer + begin, length, size_bytes, kind, root)
        begin += chunk
        if outcome != OK or begin >= size_bytes:
            if is_large(size_bytes):
                settle()
            return outcome


@routine
def _chunk(state, mpi, buffer, length, size_bytes, kind, root):
    is_root = peek(state + layout.RANK) == root
    half = next_half(state, mpi)
    if is_root:
        move(half, buffer, length)
    outcome = enter(state, mpi, kind, size_bytes, size_bytes)
    if not may_go_on(outcome):
        return outcome
    if leads(mpi):
        outcome = agree(state, mpi, outcome, kind, size_bytes, length > 0)
        if outcome == OK and length > 0:
            root_node = peek(peek(mpi + table.NODE_OF) + 8 * root)
            outcome = judge(state, calls.bcast(mpi, half, length, root_node))
    outcome = hand_out(state, mpi, outcome)
    if outcome == OK and not is_root:
        move_out(buffer, half, length, is_large(size_bytes))
    return outcome
