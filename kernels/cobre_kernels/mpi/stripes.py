"""A large allreduce: each node's leader folds one stripe of every chunk.

A *chunk* is what one round reduces; *stripe* k of it is what leader k folds. In the half of the
stage, S being the bytes of a stripe::

    contributions   for each node, for each rank here: its stripe     nodes * ranks here * S
    received        for each rank in node-major order: its stripe     size * S
    result          the stripes of all nodes, the reduced chunk       nodes * S

Where every rank is alone on its node, the first and the last are the caller's own buffers.
"""

from cobre_kernels import layout
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.atomics import peek
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import calls, table
from cobre_kernels.mpi.contributions import fold_contributions
from cobre_kernels.mpi.counts import array_of, put
from cobre_kernels.mpi.round import judge, may_go_on, next_half
from cobre_kernels.mpi.shared import agree, enter, hand_out, meet
from cobre_kernels.mpi.table import is_flat, leads, node_size


@routine
def _largest_stripe(state, mpi):
    """Bytes of the largest stripe for which a half has room; the same on all nodes."""
    nodes, widest = peek(mpi + table.NODES), peek(mpi + table.WIDEST)
    parts = nodes * widest + peek(state + layout.COMM_SIZE) + nodes
    return peek(mpi + table.HALF_BYTES) // parts // table.LINE_BYTES * table.LINE_BYTES


@routine
def reduce_in_stripes(state, mpi, send, recv, itemsize, size_bytes, kind, dtype, op):
    """Reduce chunk by chunk; a stripe is a whole number of lines, and so of elements."""
    nodes = peek(mpi + table.NODES)
    chunk = nodes * _largest_stripe(state, mpi)
    outcome = OK
    for begin in range(0, size_bytes, chunk):
        length = min(chunk, size_bytes - begin)
        lines = -(-length // table.LINE_BYTES)
        stripe = -(-lines // nodes) * table.LINE_BYTES
        if is_flat(mpi):
            outcome = _direct(
                state, mpi, send, recv, begin, length, stripe, size_bytes, kind, itemsize, dtype, op
            )
        else:
            outcome = _staged(
                state, mpi, send, recv, begin, length, stripe, size_bytes, kind, itemsize, dtype, op
            )
        if outcome != OK:
            break
    return outcome


@routine
def _begin_of(node, stripe, length):
    return min(node * stripe, length)


@routine
def _direct(state, mpi, send, recv, begin, length, stripe, size_bytes, kind, itemsize, dtype, op):
    outcome = meet(state, mpi, kind, size_bytes, size_bytes // itemsize, True)
    if outcome != OK:
        return outcome
    half = next_half(state, mpi)
    outcome = _scatter(state, mpi, send + begin, half, length, stripe)
    if outcome == OK:
        node = peek(mpi + table.NODE)
        own = _begin_of(node, stripe, length)
        own_bytes = _begin_of(node + 1, stripe, length) - own
        # What is overwritten has been sent: send may be recv.
        fold_contributions(
            state, mpi, half, recv + begin + own, own_bytes, own_bytes, itemsize, dtype, op
        )
        outcome = _spread(state, mpi, recv + begin, length, stripe)
    return outcome


@routine
def _scatter(state, mpi, source, target, length, stripe):
    """Give leader k stripe k of this rank's chunk, of a flat communicator."""
    lengths, places = array_of(state, mpi, 0), array_of(state, mpi, 1)
    received, positions = array_of(state, mpi, 2), array_of(state, mpi, 3)
    node = peek(mpi + table.NODE)
    own_bytes = _begin_of(node + 1, stripe, length) - _begin_of(node, stripe, length)
    for k in range(peek(mpi + table.NODES)):
        first = _begin_of(k, stripe, length)
        put(lengths, k, _begin_of(k + 1, stripe, length) - first)
        put(places, k, first)
        put(received, k, own_bytes)
        put(positions, k, k * own_bytes)
    code = calls.alltoallv(mpi, source, lengths, places, target, received, positions)
    return judge(state, code)


@routine
def _spread(state, mpi, result, length, stripe):
    """Give every leader every stripe of the result."""
    lengths, places = array_of(state, mpi, 0), array_of(state, mpi, 1)
    for k in range(peek(mpi + table.NODES)):
        first = _begin_of(k, stripe, length)
        put(lengths, k, _begin_of(k + 1, stripe, length) - first)
        put(places, k, first)
    in_place = peek(mpi + table.IN_PLACE)
    return judge(state, calls.allgatherv(mpi, in_place, 0, result, lengths, places))


@routine
def _staged(state, mpi, send, recv, begin, length, stripe, size_bytes, kind, itemsize, dtype, op):
    half = next_half(state, mpi)
    _contribute(mpi, half, send + begin, length, stripe)
    outcome = enter(state, mpi, kind, size_bytes, size_bytes // itemsize)
    if not may_go_on(outcome):
        return outcome
    here = node_size(mpi, peek(mpi + table.NODE))
    received = half + peek(mpi + table.NODES) * here * stripe
    result = received + peek(state + layout.COMM_SIZE) * stripe
    if leads(mpi):
        outcome = agree(state, mpi, outcome, kind, size_bytes, True)
        if outcome == OK:
            outcome = _scatter_node(state, mpi, half, received, stripe)
        if outcome == OK:
            node = peek(mpi + table.NODE)
            own = _begin_of(node, stripe, length)
            own_bytes = _begin_of(node + 1, stripe, length) - own
            fold_contributions(
                state, mpi, received, result + own, own_bytes, stripe, itemsize, dtype, op
            )
            outcome = _spread(state, mpi, result, length, stripe)
    outcome = hand_out(state, mpi, outcome)
    if outcome == OK:
        move(recv + begin, result, length)
    return outcome


@routine
def _contribute(mpi, half, source, length, stripe):
    """Put the stripes of this rank's chunk where the leader sends them from."""
    here = node_size(mpi, peek(mpi + table.NODE))
    index = peek(peek(mpi + table.LOCAL) + layout.RANK)
    for k in range(peek(mpi + table.NODES)):
        first = _begin_of(k, stripe, length)
        target = half + (k * here + index) * stripe
        move(target, source + first, _begin_of(k + 1, stripe, length) - first)


@routine
def _scatter_node(state, mpi, half, received, stripe):
    """Give leader k stripe k of all ranks of this node; the last ones may be padded."""
    lengths, places = array_of(state, mpi, 0), array_of(state, mpi, 1)
    from_there, positions = array_of(state, mpi, 2), array_of(state, mpi, 3)
    here = node_size(mpi, peek(mpi + table.NODE))
    for k in range(peek(mpi + table.NODES)):
        put(lengths, k, here * stripe)
        put(places, k, k * here * stripe)
        put(from_there, k, node_size(mpi, k) * stripe)
        put(positions, k, peek(peek(mpi + table.STARTS) + 8 * k) * stripe)
    code = calls.alltoallv(mpi, half, lengths, places, received, from_there, positions)
    return judge(state, code)
