"""Allgatherv: blocks into the stage, across by MPI_Allgatherv, out of every stage.

In the stage the ranks' chunks lie close together in node-major order, so that what a node gives is
one piece, and each byte crosses the network once for each node. Where every rank is alone on its
node, MPI_Allgatherv goes straight from buffer to buffer, with 64-bit counts if they are needed and
the library has them.
"""

from cobre_kernels import layout, libc
from cobre_kernels.arguments import check_allgatherv, hash_tables, largest_count
from cobre_kernels.collective.guard import enter as claim
from cobre_kernels.collective.guard import leave
from cobre_kernels.collective.status import OK
from cobre_kernels.kind import ALLGATHERV, pack_kind
from cobre_kernels.machine.atomics import peek
from cobre_kernels.machine.copy import is_large, move, move_out, settle
from cobre_kernels.machine.kernel import address_of, kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import calls, table
from cobre_kernels.mpi.counts import LARGEST_INT, array_of, put, put_block
from cobre_kernels.mpi.round import finish, judge, may_go_on, next_half
from cobre_kernels.mpi.shared import agree, agree_with, enter, hand_out, meet
from cobre_kernels.mpi.table import is_flat, leads, table_of


@kernel(arguments=10)
def allgatherv_kernel(
    state,
    send,
    send_count,
    recv,
    recv_count,
    itemsize,
    dtype,
    counts,
    displs,
    counts_len,
    displs_len,
):
    """Gather blocks of different lengths; arguments are addresses and numbers of elements."""
    state = address_of(state)
    outcome = claim(state)
    if outcome != OK:
        return outcome
    outcome = check_allgatherv(
        state, send, send_count, recv, recv_count, itemsize, counts, displs, counts_len, displs_len
    )
    if outcome != OK:
        leave(state)
        return outcome
    kind = pack_kind(ALLGATHERV, dtype, 0)
    mpi = table_of(state)
    size = peek(state + layout.COMM_SIZE)
    tables = hash_tables(size, itemsize, counts, displs)
    # By the tables, which are the same on all ranks: recv may be longer on some.
    needs_large = _reach(size, counts, displs) * itemsize > LARGEST_INT
    thread = libc.release_gil()
    if is_flat(mpi) and largest_count(size, counts) * itemsize <= table.INLINE_BYTES:
        outcome = _with_heads(state, mpi, send, recv, itemsize, counts, displs, kind, tables)
    elif is_flat(mpi) and (not needs_large or peek(mpi + table.HAS_LARGE) != 0):
        outcome = meet(state, mpi, kind, tables, send_count, True)
        if outcome == OK:
            outcome = _direct(state, mpi, send, recv, itemsize, counts, displs, needs_large)
    else:
        outcome = _staged(state, mpi, send, recv, itemsize, counts, displs, kind, tables)
        if is_large(recv_count * itemsize):
            settle()
    libc.regain_gil(thread)
    return finish(state, mpi, outcome, kind)


@routine
def _direct(state, mpi, send, recv, itemsize, counts, displs, needs_large):
    lengths, places = array_of(state, mpi, 0), array_of(state, mpi, 1)
    for rank in range(peek(state + layout.COMM_SIZE)):
        put_block(lengths, rank, peek(counts + 8 * rank) * itemsize, needs_large)
        put_block(places, rank, peek(displs + 8 * rank) * itemsize, needs_large)
    rank = peek(state + layout.RANK)
    own = recv + peek(displs + 8 * rank) * itemsize
    if send != own:  # MPI wants all ranks in place, or none; it would copy this as well
        move(own, send, peek(counts + 8 * rank) * itemsize)
    in_place = peek(mpi + table.IN_PLACE)
    if needs_large:
        code = calls.allgatherv_large(mpi, in_place, 0, recv, lengths, places)
    else:
        code = calls.allgatherv(mpi, in_place, 0, recv, lengths, places)
    return judge(state, code)


@routine
def _with_heads(state, mpi, send, recv, itemsize, counts, displs, kind, tables):
    """Blocks so short that they travel with the heads, of a flat communicator."""
    rank = peek(state + layout.RANK)
    own_bytes = peek(counts + 8 * rank) * itemsize
    outcome = enter(state, mpi, kind, tables, peek(counts + 8 * rank))
    if not may_go_on(outcome):
        return outcome
    outcome = agree_with(state, mpi, outcome, kind, tables, send, own_bytes, False)
    outcome = hand_out(state, mpi, outcome)
    if outcome == OK:
        for r in range(peek(state + layout.COMM_SIZE)):
            source = peek(mpi + table.HEADS) + r * table.HEAD_BYTES + table.PAYLOAD
            block = recv + peek(displs + 8 * r) * itemsize
            move(block, source, peek(counts + 8 * r) * itemsize)
    return outcome


@routine
def _staged(state, mpi, send, recv, itemsize, counts, displs, kind, tables):
    chunk, largest = _plan(state, mpi, itemsize, counts)
    begin = 0
    while True:
        outcome = _round(
            state, mpi, send, recv, itemsize, counts, displs, begin, chunk, kind, tables
        )
        begin += chunk
        if outcome != OK or begin >= largest:
            return outcome


@routine
def _plan(state, mpi, itemsize, counts):
    """Bytes of a rank's chunk, and of the longest block."""
    givers, size = 0, peek(state + layout.COMM_SIZE)
    for rank in range(size):
        givers += 1 if peek(counts + 8 * rank) > 0 else 0
    share = peek(mpi + table.HALF_BYTES) // max(givers, 1)
    return share // table.LINE_BYTES * table.LINE_BYTES, largest_count(size, counts) * itemsize


@routine
def _bytes_of(counts, rank, itemsize, begin, chunk):
    """Bytes of a rank's block between ``begin`` and ``begin + chunk``."""
    return max(min(peek(counts + 8 * rank) * itemsize - begin, chunk), 0)


@routine
def _offset_of(mpi, counts, place, itemsize, begin, chunk):
    """Where the chunk of the rank at a place of node-major order lies in the stage."""
    offset = 0
    for before in range(place):
        rank = peek(peek(mpi + table.ORDER) + 8 * before)
        offset += _bytes_of(counts, rank, itemsize, begin, chunk)
    return offset


@routine
def _round(state, mpi, send, recv, itemsize, counts, displs, begin, chunk, kind, tables):
    rank = peek(state + layout.RANK)
    own_bytes = _bytes_of(counts, rank, itemsize, begin, chunk)
    half = next_half(state, mpi)
    if own_bytes > 0:
        place = table.place_of(mpi, rank)
        own = half + _offset_of(mpi, counts, place, itemsize, begin, chunk)
        move(own, send + begin, own_bytes)
    outcome = enter(state, mpi, kind, tables, peek(counts + 8 * rank))
    if not may_go_on(outcome):
        return outcome
    if leads(mpi):
        outcome = agree(state, mpi, outcome, kind, tables, True)
        if outcome == OK:
            outcome = _cross(state, mpi, half, itemsize, counts, begin, chunk)
    outcome = hand_out(state, mpi, outcome)
    if outcome == OK:
        _take_out(state, mpi, send, recv, itemsize, counts, displs, begin, chunk, half)
    return outcome


@routine
def _cross(state, mpi, half, itemsize, counts, begin, chunk):
    lengths, places = array_of(state, mpi, 0), array_of(state, mpi, 1)
    starts, total = peek(mpi + table.STARTS), 0
    for node in range(peek(mpi + table.NODES)):
        put(places, node, total)
        length = 0
        for place in range(peek(starts + 8 * node), peek(starts + 8 * node + 8)):
            rank = peek(peek(mpi + table.ORDER) + 8 * place)
            length += _bytes_of(counts, rank, itemsize, begin, chunk)
        put(lengths, node, length)
        total += length
    if total == 0:
        return OK
    in_place = peek(mpi + table.IN_PLACE)
    return judge(state, calls.allgatherv(mpi, in_place, 0, half, lengths, places))


@routine
def _take_out(state, mpi, send, recv, itemsize, counts, displs, begin, chunk, half):
    offset = 0
    size = peek(state + layout.COMM_SIZE)
    past_caches = is_large(_reach(size, counts, displs) * itemsize)
    for place in range(size):
        rank = peek(peek(mpi + table.ORDER) + 8 * place)
        length = _bytes_of(counts, rank, itemsize, begin, chunk)
        block = recv + peek(displs + 8 * rank) * itemsize
        if length > 0 and not (rank == peek(state + layout.RANK) and block == send):
            move_out(block + begin, half + offset, length, past_caches)
        offset += length


@routine
def _reach(size, counts, displs):
    reach = 0
    for rank in range(size):
        reach = max(reach, peek(counts + 8 * rank) + peek(displs + 8 * rank))
    return reach
