"""Allreduce: MPI moves contributions, our fold reduces them in rank order.

On a flat communicator a few bytes travel with the headers. Up to GATHER_BYTES every rank's
contribution goes to every node, and every rank folds them all.

Above, stripes move less. A *chunk* is what one round reduces; *stripe* k of it is what leader k
folds. MPI_Alltoallv gives each leader its stripe of all contributions, MPI_Allgatherv the results
to all. So a node receives the payload of its own ranks' number and once the result, not the payload
of every rank. In the half of the staging buffer, S being the bytes of a stripe::

    contributions   for each node, for each rank here: its stripe     nodes * ranks here * S
    received        for each rank in node order: its stripe           size * S
    result          the stripes of all nodes, the reduced chunk       nodes * S

On a flat communicator, the first and the last are the caller's own buffers.
"""

from typing import NamedTuple

from cobre_kernels.collective.calls import Allreduce
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.fold import fold
from cobre_kernels.collective.regions import may_be_shared
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import calls
from cobre_kernels.mpi.records import (
    BLOCK_BYTES,
    EAGER_BYTES,
    STRIPE_LINE_BYTES,
    is_flat,
    is_leader,
    next_half,
    ranks_of,
)
from cobre_kernels.mpi.round import enter_eager_round, enter_round, hand_out

GATHER_BYTES = 16384  # of one contribution; above, stripes cost less


class Chunk(NamedTuple):
    """Where a chunk begins in the payload, its bytes, and those of its stripes but the last."""

    begin: int
    length: int
    stripe: int


@kernel(COMM, Allreduce)
def allreduce_body(comm, call):
    """Choose one of the three ways; ``comm.length`` is the payload in bytes."""
    if is_flat(comm) and comm.length <= EAGER_BYTES:
        return _eager(comm, call)
    if comm.length <= min(GATHER_BYTES, comm.mpi.half_bytes // comm.size):
        return _gathered(comm, call)
    return _reduce_in_stripes(comm, call)


@routine
def _eager(comm, call):
    size_bytes = comm.length
    outcome = hand_out(comm, enter_eager_round(comm, call.send, size_bytes))
    if outcome == OK:
        headers = comm.mpi.headers
        move(call.recv, headers[0].payload, size_bytes)
        for rank in range(1, comm.size):
            fold(comm, call, call.recv, headers[rank].payload, size_bytes)
    return outcome


@routine
def _gathered(comm, call):
    mpi, size_bytes = comm.mpi, comm.length
    half = next_half(mpi)
    move(half + mpi.node_index[comm.rank] * size_bytes, call.send, size_bytes)
    outcome = enter_round(comm, True)
    if outcome == OK and is_leader(comm):
        calls.put_given_by_node(comm, size_bytes)
        outcome = calls.allgatherv(comm, half)
    outcome = hand_out(comm, outcome)
    if outcome == OK:
        _fold_contributions(comm, call, call.recv, half, (size_bytes, size_bytes))
    return outcome


@routine
def _reduce_in_stripes(comm, call):
    """Reduce chunk by chunk; a stripe is a whole number of lines, and so of elements."""
    nodes = comm.mpi.nodes
    chunk_bytes = nodes * _largest_stripe(comm)
    for begin in range(0, comm.length, chunk_bytes):
        length = min(chunk_bytes, comm.length - begin)
        lines = -(-length // STRIPE_LINE_BYTES)
        chunk = Chunk(begin, length, -(-lines // nodes) * STRIPE_LINE_BYTES)
        outcome = _direct(comm, call, chunk) if is_flat(comm) else _staged(comm, call, chunk)
        if outcome != OK:
            return outcome
    return OK


@routine
def _largest_stripe(comm):
    """Return the bytes of the largest stripe that a half has room for; the same on all nodes."""
    mpi = comm.mpi
    parts = mpi.nodes * mpi.widest + comm.size + mpi.nodes
    return mpi.half_bytes // parts // STRIPE_LINE_BYTES * STRIPE_LINE_BYTES


@routine
def _begin_of(chunk, node):
    """Return where a node's stripe begins in the chunk."""
    return min(node * chunk.stripe, chunk.length)


@routine
def _bytes_of(chunk, node):
    return _begin_of(chunk, node + 1) - _begin_of(chunk, node)


@routine
def _direct(comm, call, chunk):
    """Reduce a chunk of a flat communicator."""
    received, result = next_half(comm.mpi), call.recv + chunk.begin
    outcome = enter_round(comm, True)
    if outcome == OK:
        outcome = _scatter(comm, call.send + chunk.begin, received, chunk)
    if outcome == OK:  # what is overwritten has been sent: send may be recv
        outcome = _fold_and_spread(comm, call, chunk, received, result)
    return hand_out(comm, outcome)


@routine
def _staged(comm, call, chunk):
    mpi = comm.mpi
    half = next_half(mpi)
    _contribute(comm, half, call.send + chunk.begin, chunk)
    outcome = enter_round(comm, True)
    received = half + mpi.nodes * mpi.node.size * chunk.stripe
    result = received + comm.size * chunk.stripe
    if outcome == OK and is_leader(comm):
        outcome = _scatter_node(comm, half, received, chunk.stripe)
        if outcome == OK:
            outcome = _fold_and_spread(comm, call, chunk, received, result)
    outcome = hand_out(comm, outcome)
    if outcome == OK:
        move(call.recv + chunk.begin, result, chunk.length)
    return outcome


@routine
def _contribute(comm, half, source, chunk):
    """Put the stripes of this rank's chunk where the leader sends them from."""
    node = comm.mpi.node
    for k in range(comm.mpi.nodes):
        target = half + (k * node.size + node.rank) * chunk.stripe
        move(target, source + _begin_of(chunk, k), _bytes_of(chunk, k))


@routine
def _scatter(comm, source, target, chunk):
    """Give leader k stripe k of this rank's chunk, on a flat communicator."""
    mpi = comm.mpi
    own_bytes = _bytes_of(chunk, mpi.own_node)
    for k in range(mpi.nodes):
        calls.put_given(comm, k, _bytes_of(chunk, k), _begin_of(chunk, k))
        calls.put_got(comm, k, own_bytes, k * chunk.stripe)
    return calls.alltoallv(comm, source, target)


@routine
def _scatter_node(comm, source, target, stripe):
    """Give leader k stripe k of all ranks of this node; the last ones may be padded."""
    mpi, given = comm.mpi, comm.mpi.node.size * stripe
    for k in range(mpi.nodes):
        calls.put_given(comm, k, given, k * given)
        calls.put_got(comm, k, ranks_of(mpi, k) * stripe, mpi.node_starts[k] * stripe)
    return calls.alltoallv(comm, source, target)


@routine
def _fold_and_spread(comm, call, chunk, received, result):
    """Fold this node's stripe of all contributions; give every leader every stripe."""
    mpi = comm.mpi
    span = (_bytes_of(chunk, mpi.own_node), chunk.stripe)
    own = result + _begin_of(chunk, mpi.own_node)
    _fold_contributions(comm, call, own, received, span)
    for k in range(mpi.nodes):
        calls.put_given(comm, k, _bytes_of(chunk, k), _begin_of(chunk, k))
    return calls.allgatherv(comm, result)


@routine
def _fold_contributions(comm, call, target, received, span):
    """Fold so many bytes of every rank, so far apart in node order, into ``target``.

    Where other ranks of the node may fold into the same memory, only the result goes there.
    """
    length, stride = span
    node_index = comm.mpi.node_index
    is_shared = may_be_shared(comm, target, length)
    for begin in range(0, length, BLOCK_BYTES):
        block = min(BLOCK_BYTES, length - begin)
        accumulator = comm.mpi.accumulator if is_shared else target + begin
        move(accumulator, received + node_index[0] * stride + begin, block)
        for rank in range(1, comm.size):
            source = received + node_index[rank] * stride + begin
            fold(comm, call, accumulator, source, block)
        if is_shared:
            move(target + begin, accumulator, block)
