"""Allreduce: the transport moves contributions, our fold reduces them in rank order.

Small contributions go to every node, and every rank folds them all.

Large ones go along a chain of nodes, if the transport has one, if nodes hold several ranks in the
order of ranks, and if that takes less time than stripes (:func:`chain_pays`). Each node folds its
ranks into the chunk that comes, so a link carries the payload twice, however many ranks a node has.
The half of the staging buffer holds the chunk of each rank here, and the result. Two ranks on nodes
of their own use the chain too, from buffer to buffer: each sends the other its payload.

Else they go by stripes. One round reduces a *chunk*, and each leader folds one *stripe* of it, in
each lane (``lanes.py``). Each leader gets its stripe of all contributions, and gives the result to
all of its lane. So a node receives as many payloads as it has ranks, and once the result, instead
of the payload of every rank. The half of the staging buffer holds, S being the bytes of a stripe::

    contributions   for each leader, for each rank here: its stripe   nodes * lanes * ranks here * S
    received        for each lane, each rank in node order: a stripe  lanes * size * S
    result          all stripes, the reduced chunk                    nodes * lanes * S

On a flat communicator, the first and the last are the caller's own buffers. Along a chain, each
lane has a share of the chunk.
"""

from typing import NamedTuple

from cobre_kernels.collective.calls import Allreduce, contribution_bytes
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.reduction.fold import FOLD_BLOCK_BYTES, fold
from cobre_kernels.collective.regions import may_be_shared
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel, run
from cobre_kernels.nodes.lanes import choose_lanes, share_of
from cobre_kernels.nodes.outputs import NO_ROOT, end_together, note_output
from cobre_kernels.nodes.records import (
    LEAST_PIECE_BYTES,
    MEETING,
    STRIPE_LINE_BYTES,
    is_flat,
    is_pair,
    leads,
    next_half,
    ranks_of,
    set_block,
    set_blocks_by_rank,
    set_recv,
    set_send,
)
from cobre_kernels.nodes.round import enter_round, gather_round, hand_out
from cobre_kernels.nodes.verbs import Chain, Gather, Scatter

GATHER_BYTES = 16384  # of one contribution; above, stripes and the chain cost less


class Chunk(NamedTuple):
    """Where a chunk begins in the payload, its bytes, and those of its stripes but the last."""

    begin: int
    length: int
    stripe: int


@kernel(COMM, Allreduce)
def allreduce_body(comm, call):
    """Choose one of the three ways."""
    choose_lanes(comm, contribution_bytes(call))
    note_output(comm, call.recv, contribution_bytes(call), NO_ROOT, False)
    return end_together(comm, _reduce(comm, call), MEETING)


@routine
def _reduce(comm, call):
    nodes, size_bytes = comm.nodes, contribution_bytes(call)
    if size_bytes <= gathered_bytes(nodes.widest, comm.size, nodes.eager_bytes, nodes.half_bytes):
        return _gathered(comm, call)
    if nodes.chain != 0 and is_pair(comm):
        return _chain_round(comm, call, (call.send, 0, call.recv), (0, size_bytes), (0, 0, 0))
    has_chain = nodes.chain != 0 and nodes.is_ordered != 0 and not is_flat(comm)
    if has_chain and chain_pays(nodes.nodes, nodes.widest, nodes.lanes_now, nodes.half_bytes):
        return _along_chain(comm, call)
    return _reduce_in_stripes(comm, call)


@routine
def gathered_bytes(ranks, size, eager_bytes, half_bytes):
    """Return the largest contribution that goes to every node."""
    return min(max(GATHER_BYTES, eager_bytes // ranks), half_bytes // size)


@routine
def chain_pays(nodes, ranks, lanes, half_bytes):
    """Tell whether a large payload takes less time along a chain than by stripes.

    Times are in those of a lane's share on a link, for which a rank that folds it takes half as
    long. Each chunk fills the chain anew, which the chunk before it hides by half: so it was
    measured (docs/design/scale.md). More ranks on a node, and more lanes, leave room for shorter
    chunks.
    """
    pieces = max(half_bytes / (ranks + 1) / lanes / LEAST_PIECE_BYTES, 1.0)
    chain = min(nodes - 1, 2) + (nodes - 1) * (2.0 + ranks / 2) / (2.0 * pieces)
    stripes = (ranks + 1) * (nodes - 1) / nodes + ranks / 2
    return chain < stripes


@routine
def _gathered(comm, call):
    nodes, size_bytes = comm.nodes, contribution_bytes(call)
    half = next_half(nodes)
    move(half + nodes.node_index[comm.rank] * size_bytes, call.send, size_bytes)
    set_blocks_by_rank(nodes, size_bytes)
    outcome = gather_round(comm, half, True)
    if outcome == OK and nodes.writes != 0:
        _fold_contributions(comm, call, call.recv, half, (size_bytes, size_bytes))
    return outcome


@routine
def _along_chain(comm, call):
    """Reduce chunk by chunk; all nodes have chunks of the same size."""
    nodes, node, size_bytes = comm.nodes, comm.node, contribution_bytes(call)
    chunk_bytes = chain_chunk_bytes(nodes.widest, nodes.half_bytes)
    begin, before = 0, (0, 0, 0)
    while begin < size_bytes:
        length = min(chunk_bytes, size_bytes - begin)
        half = next_half(nodes)
        result = half + node.size * chunk_bytes
        move(half + node.rank * chunk_bytes, call.send + begin, length)
        memory = (half, chunk_bytes, result)
        outcome = _chain_round(comm, call, memory, (begin, length), before)
        if outcome != OK:
            return outcome
        before = (begin, length, result)
        begin += chunk_bytes
    _take(comm, call, before)
    return OK


@routine
def chain_chunk_bytes(ranks, half_bytes):
    """Return the bytes of a chunk: a half has room for that of each rank here, and the result."""
    return half_bytes // (ranks + 1) // STRIPE_LINE_BYTES * STRIPE_LINE_BYTES


@routine
def _chain_round(comm, call, memory, span, before):
    """Go through a round that reduces a chunk along the chain; meanwhile, take the one before."""
    (contributions, stride, result), (begin, length) = memory, span
    outcome = enter_round(comm, begin == 0)
    if outcome == OK and leads(comm):
        first, share = share_of(comm.nodes, length)
        what = Chain(
            contributions + first, stride, comm.node.size, result + first, share,
            call.dtype, call.op,
        )  # fmt: skip
        outcome = run(comm.nodes.chain, comm, what)
    if outcome == OK:
        _take(comm, call, before)
    return hand_out(comm, outcome)


@routine
def _take(comm, call, chunk):
    """Copy the result of a chunk out, unless another rank of the node has the same output."""
    begin, length, result = chunk
    if length > 0 and comm.nodes.writes != 0:
        move(call.recv + begin, result, length)


@routine
def _reduce_in_stripes(comm, call):
    """Reduce chunk by chunk, all as long; a stripe is whole lines, and so whole elements."""
    stripes, size_bytes = comm.nodes.nodes * comm.nodes.lanes_now, contribution_bytes(call)
    chunks = -(-size_bytes // (stripes * _largest_stripe(comm)))
    line_bytes = stripes * STRIPE_LINE_BYTES
    chunk_bytes = -(-size_bytes // (chunks * line_bytes)) * line_bytes
    begin, before = 0, (0, 0, 0)
    while begin < size_bytes:
        length = min(chunk_bytes, size_bytes - begin)
        lines = -(-length // STRIPE_LINE_BYTES)
        chunk = Chunk(begin, length, -(-lines // stripes) * STRIPE_LINE_BYTES)
        if is_flat(comm):
            outcome = _direct(comm, call, chunk)
        else:
            outcome, result = _staged(comm, call, chunk, before)
            before = (begin, length, result)
        if outcome != OK:
            return outcome
        begin += chunk_bytes
    _take(comm, call, before)
    return OK


@routine
def _largest_stripe(comm):
    """Return the bytes of the largest stripe that a half has room for; the same on all nodes.

    A flat communicator has room for three times as much, but larger chunks do not stay in caches.
    """
    nodes = comm.nodes
    parts = nodes.lanes_now * (nodes.nodes * nodes.widest + comm.size + nodes.nodes)
    return nodes.half_bytes // parts // STRIPE_LINE_BYTES * STRIPE_LINE_BYTES


@routine
def _stripe_of(nodes, node):
    """Return the number of the stripe that a node's leader in this lane folds."""
    return node * nodes.lanes_now + nodes.lane


@routine
def _begin_of(chunk, stripe):
    """Return where a stripe begins in the chunk."""
    return min(stripe * chunk.stripe, chunk.length)


@routine
def _bytes_of(chunk, stripe):
    return _begin_of(chunk, stripe + 1) - _begin_of(chunk, stripe)


@routine
def _direct(comm, call, chunk):
    """Reduce a chunk of a flat communicator."""
    received, result = next_half(comm.nodes), call.recv + chunk.begin
    outcome = enter_round(comm, chunk.begin == 0)
    if outcome == OK:
        outcome = _scatter(comm, call.send + chunk.begin, received, chunk)
    if outcome == OK:  # send may be recv: the bytes that are overwritten have been sent
        outcome = _fold_and_spread(comm, call, chunk, received, result)
    return hand_out(comm, outcome)


@routine
def _staged(comm, call, chunk, before):
    """Reduce a chunk; meanwhile, take the one before. Return how it ended, and where it is."""
    nodes = comm.nodes
    half = next_half(nodes)
    _contribute(comm, half, call.send + chunk.begin, chunk)
    outcome = enter_round(comm, chunk.begin == 0)
    contributed = half + nodes.nodes * nodes.lanes_now * comm.node.size * chunk.stripe
    received = contributed + nodes.lane * comm.size * chunk.stripe
    result = contributed + nodes.lanes_now * comm.size * chunk.stripe
    if outcome == OK and leads(comm):
        outcome = _scatter_node(comm, half, received, chunk.stripe)
        if outcome == OK:
            outcome = _fold_and_spread(comm, call, chunk, received, result)
    if outcome == OK:
        _take(comm, call, before)
    return hand_out(comm, outcome), result


@routine
def _contribute(comm, half, source, chunk):
    """Put the stripes of this rank's chunk where leaders send them from."""
    node = comm.node
    for stripe in range(comm.nodes.nodes * comm.nodes.lanes_now):
        target = half + (stripe * node.size + node.rank) * chunk.stripe
        move(target, source + _begin_of(chunk, stripe), _bytes_of(chunk, stripe))


@routine
def _scatter(comm, source, target, chunk):
    """Give leader k stripe k of this rank's chunk, on a flat communicator."""
    nodes = comm.nodes
    own_bytes = _bytes_of(chunk, nodes.own_node)
    for k in range(nodes.nodes):
        set_send(nodes, k, _bytes_of(chunk, k), _begin_of(chunk, k))
        set_recv(nodes, k, own_bytes, k * chunk.stripe)
    return run(nodes.alltoallv, comm, Scatter(source, target))


@routine
def _scatter_node(comm, source, target, stripe):
    """Give each leader its stripe of all ranks of this node; the last ones may be padded."""
    nodes, send_bytes = comm.nodes, comm.node.size * stripe
    for k in range(nodes.nodes):
        set_send(nodes, k, send_bytes, _stripe_of(nodes, k) * send_bytes)
        set_recv(nodes, k, ranks_of(nodes, k) * stripe, nodes.node_starts[k] * stripe)
    return run(nodes.alltoallv, comm, Scatter(source, target))


@routine
def _fold_and_spread(comm, call, chunk, received, result):
    """Fold this leader's stripe of all contributions; give all of its lane every stripe of it."""
    nodes, own = comm.nodes, _stripe_of(comm.nodes, comm.nodes.own_node)
    span = (_bytes_of(chunk, own), chunk.stripe)
    _fold_contributions(comm, call, result + _begin_of(chunk, own), received, span)
    for k in range(nodes.nodes):
        stripe = _stripe_of(nodes, k)
        set_block(nodes, k, _bytes_of(chunk, stripe), _begin_of(chunk, stripe))
    return run(nodes.allgatherv, comm, Gather(result, 1))


@routine
def _fold_contributions(comm, call, target, received, span):
    """Fold the contributions of all ranks, which lie in node order, into ``target``.

    ``span`` is the length of a contribution, and how far it lies from the next one. Where other
    ranks of the node may fold into the same memory, only the result goes there.
    """
    length, stride = span
    node_index = comm.nodes.node_index
    is_shared = may_be_shared(comm, target, length)
    for begin in range(0, length, FOLD_BLOCK_BYTES):
        block = min(FOLD_BLOCK_BYTES, length - begin)
        accumulator = comm.nodes.accumulator if is_shared else target + begin
        move(accumulator, received + node_index[0] * stride + begin, block)
        for rank in range(1, comm.size):
            source = received + node_index[rank] * stride + begin
            fold(comm, call, accumulator, source, block)
        if is_shared:
            move(target + begin, accumulator, block)
