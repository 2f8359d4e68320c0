"""Allreduce: MPI moves contributions, our fold reduces them in rank order.

A few bytes travel with the heads where every rank is alone on its node. Up to GATHER_BYTES every
rank's contribution goes to every node, and every rank folds them all. Above, chunk by chunk, each
node gets one stripe of everybody's chunk (MPI_Alltoallv), its leader folds that, and the results
go to all (MPI_Allgatherv): a node receives the payload of its own ranks' number and once the
result, not everybody's payload.
"""

from cobre_kernels import layout, libc
from cobre_kernels.arguments import check_allreduce
from cobre_kernels.collective.fold import fold
from cobre_kernels.collective.guard import enter as claim
from cobre_kernels.collective.guard import leave
from cobre_kernels.collective.status import OK
from cobre_kernels.kind import ALLREDUCE, pack_kind
from cobre_kernels.machine.atomics import peek
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import address_of, kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import calls, table
from cobre_kernels.mpi.contributions import fold_contributions
from cobre_kernels.mpi.counts import by_node
from cobre_kernels.mpi.round import finish, judge, may_go_on, next_half
from cobre_kernels.mpi.shared import agree, agree_with, enter, hand_out
from cobre_kernels.mpi.stripes import reduce_in_stripes
from cobre_kernels.mpi.table import is_flat, leads, place_of, table_of

GATHER_BYTES = 16384  # of one contribution; above, stripes cost less


@kernel(arguments=7)
def allreduce_kernel(state, send, send_count, recv, recv_count, itemsize, dtype, op):
    """Fold ``send`` of all ranks into ``recv``; arguments are addresses and numbers of elements."""
    state = address_of(state)
    outcome = claim(state)
    if outcome != OK:
        return outcome
    outcome = check_allreduce(send, send_count, recv, recv_count, itemsize, dtype, op)
    if outcome != OK:
        leave(state)
        return outcome
    kind = pack_kind(ALLREDUCE, dtype, op)
    mpi = table_of(state)
    size_bytes = send_count * itemsize
    room = peek(mpi + table.HALF_BYTES) // peek(state + layout.COMM_SIZE)
    thread = libc.release_gil()
    if is_flat(mpi) and size_bytes <= table.INLINE_BYTES:
        outcome = _with_heads(state, mpi, send, recv, itemsize, size_bytes, kind, dtype, op)
    elif size_bytes <= min(GATHER_BYTES, room):
        outcome = _gathered(state, mpi, send, recv, itemsize, size_bytes, kind, dtype, op)
    else:
        outcome = reduce_in_stripes(state, mpi, send, recv, itemsize, size_bytes, kind, dtype, op)
    libc.regain_gil(thread)
    return finish(state, mpi, outcome, kind)


@routine
def _with_heads(state, mpi, send, recv, itemsize, size_bytes, kind, dtype, op):
    count = size_bytes // itemsize
    outcome = enter(state, mpi, kind, size_bytes, count)
    if not may_go_on(outcome):
        return outcome
    outcome = agree_with(state, mpi, outcome, kind, size_bytes, send, size_bytes, False)
    outcome = hand_out(state, mpi, outcome)
    if outcome == OK:
        payload = peek(mpi + table.HEADS) + table.PAYLOAD
        move(recv, payload, size_bytes)
        for rank in range(1, peek(state + layout.COMM_SIZE)):
            fold(state, dtype, op, recv, payload + rank * table.HEAD_BYTES, count)
    return outcome


@routine
def _gathered(state, mpi, send, recv, itemsize, size_bytes, kind, dtype, op):
    half = next_half(state, mpi)
    own = place_of(mpi, peek(state + layout.RANK))
    move(half + own * size_bytes, send, size_bytes)
    outcome = enter(state, mpi, kind, size_bytes, size_bytes // itemsize)
    if not may_go_on(outcome):
        return outcome
    if leads(mpi):
        outcome = agree(state, mpi, outcome, kind, size_bytes, True)
        if outcome == OK:
            lengths, places = by_node(state, mpi, size_bytes)
            in_place = peek(mpi + table.IN_PLACE)
            code = calls.allgatherv(mpi, in_place, 0, half, lengths, places)
            outcome = judge(state, code)
    outcome = hand_out(state, mpi, outcome)
    if outcome == OK:
        fold_contributions(state, mpi, half, recv, size_bytes, size_bytes, itemsize, dtype, op)
    return outcome
