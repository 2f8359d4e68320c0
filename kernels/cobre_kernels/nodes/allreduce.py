"""Allreduce: the transport moves contributions, and our own fold reduces them in rank order.

Small contributions go to every node, and every rank folds them all.

Large contributions go along a chain of nodes, if the transport has a chain, if nodes hold several
ranks in the order of ranks, and if the chain takes less time than stripes (:func:`chain_pays`).
Each node folds the contributions of its ranks into the arriving chunk, so a link carries the
payload twice, however many ranks a node has. A half of the staging buffer holds the result, and the
chunk of each rank of the node. Two ranks on nodes of their own use the chain too, from buffer to
buffer: each sends its payload to the other.

Else large contributions go by stripes. One round reduces a *chunk*. In each lane, each leader gets
its *stripe* of the chunk from all ranks, folds it, and gives the result to all leaders of the lane.
So a node receives as many payloads as it has ranks, and the result once; without stripes it would
receive the payload of every rank. A half of the staging buffer holds, with S bytes in a stripe::

    result          all stripes, the reduced chunk                    nodes * lanes * S
    contributions   for each leader, for each rank here: its stripe   nodes * lanes * ranks here * S
    received        for each lane, each rank in node order: a stripe  lanes * size * S

On a flat communicator, result and contributions are the caller's own buffers. Along a chain, each
lane moves a share of the chunk.
"""

from cobre_kernels.collective.calls import Allreduce, contribution_bytes
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.reduction.fold import FOLD_BLOCK_BYTES, fold
from cobre_kernels.collective.regions import NOWHERE, OutputMemory, may_be_shared
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel, run
from cobre_kernels.nodes.lanes import choose_lanes, share_of
from cobre_kernels.nodes.outputs import NO_ROOT, note_output
from cobre_kernels.nodes.records import (
    LEAST_PIECE_BYTES,
    STRIPE_LINE_BYTES,
    is_flat,
    is_pair,
    next_half,
    ranks_of,
    set_block,
    set_blocks_by_rank,
    set_recv,
    set_send,
)
from cobre_kernels.nodes.round import Chunk, gather, in_rounds
from cobre_kernels.nodes.verbs import Chain, Gather, Scatter

GATHER_BYTES = 16384  # of one contribution; for more, stripes and the chain cost less


@kernel(COMM, Allreduce)
def allreduce_body(comm, call):
    """Choose one of the three ways.

    The output is noted without data to send, because leaders fold, and so move no whole output.
    """
    nodes, size_bytes = comm.nodes, contribution_bytes(call)
    choose_lanes(comm, size_bytes)
    note_output(comm, OutputMemory(call.recv, size_bytes, NOWHERE, 0), NO_ROOT)
    if size_bytes <= gathered_bytes(nodes.widest, comm.size, nodes.eager_bytes, nodes.half_bytes):
        return in_rounds(comm, call, size_bytes, _put_whole, gather, _fold_whole)
    if nodes.chain != 0 and (is_pair(comm) or _chain_pays(comm)):
        return in_rounds(comm, call, size_bytes, _put_for_chain, _chain, _take)
    return in_rounds(comm, call, size_bytes, _put_stripes, _reduce_stripes, _take)


@routine
def _chain_pays(comm):
    nodes = comm.nodes
    if is_flat(comm) or nodes.is_ordered == 0:
        return False
    return chain_pays(nodes.nodes, nodes.widest, nodes.lanes_now, nodes.half_bytes)


@routine
def gathered_bytes(ranks, size, eager_bytes, half_bytes):
    """Return the largest contribution that goes to every node."""
    return min(max(GATHER_BYTES, eager_bytes // ranks), half_bytes // size)


@routine
def chain_pays(nodes, ranks, lanes, half_bytes):
    """Tell whether a large payload takes less time along a chain than by stripes.

    The unit of time is what a lane's share takes on a link; the fold of a share takes half a unit.
    Each chunk has to fill the chain anew. Measurements say that the chunk before hides half of that
    time (docs/design/scale.md). More ranks on a node, or more lanes, make shares shorter.
    """
    pieces = max(half_bytes / (ranks + 1) / lanes / LEAST_PIECE_BYTES, 1.0)
    chain = min(nodes - 1, 2) + (nodes - 1) * (2.0 + ranks / 2) / (2.0 * pieces)
    stripes = (ranks + 1) * (nodes - 1) / nodes + ranks / 2
    return chain < stripes


@routine
def _put_whole(comm, call, begin):
    nodes, size_bytes = comm.nodes, contribution_bytes(call)
    half = next_half(nodes)
    move(half + nodes.node_index[comm.rank] * size_bytes, call.send, size_bytes)
    set_blocks_by_rank(nodes, size_bytes)
    return Chunk(begin, size_bytes, half, 1)


@routine
def _fold_whole(comm, call, chunk):
    _fold_contributions(comm, call, call.recv, chunk.buffer, (chunk.length, chunk.length))


@routine
def _put_for_chain(comm, call, begin):
    """Put this rank's chunk behind the place of the result; chunks have one size on all nodes."""
    nodes, left = comm.nodes, contribution_bytes(call) - begin
    if is_pair(comm):
        return Chunk(begin, left, call.recv, 0)
    half, stride = next_half(nodes), chain_chunk_bytes(nodes.widest, nodes.half_bytes)
    length = min(stride, left)
    move(half + (1 + comm.node.rank) * stride, call.send + begin, length)
    return Chunk(begin, length, half, 0)


@routine
def chain_chunk_bytes(ranks, half_bytes):
    """Return the bytes of a chunk: a half holds a chunk of each rank here, and the result."""
    return half_bytes // (ranks + 1) // STRIPE_LINE_BYTES * STRIPE_LINE_BYTES


@routine
def _chain(comm, call, chunk):
    """As a leader, reduce this lane's share of a chunk along the chain."""
    stride = chain_chunk_bytes(comm.nodes.widest, comm.nodes.half_bytes)
    first, share = share_of(comm.nodes, chunk.length)
    source = call.send if is_pair(comm) else chunk.buffer + stride
    what = Chain(
        source + first, stride, comm.node.size, chunk.buffer + first, share, call.dtype, call.op
    )
    return run(comm.nodes.chain, comm, what)


@routine
def _take(comm, call, chunk):
    """Copy the result of a chunk out, unless it is in place."""
    target = call.recv + chunk.begin
    if chunk.buffer != target:
        move(target, chunk.buffer, chunk.length)


@routine
def _put_stripes(comm, call, begin):
    """Put the stripes of this rank's chunk where leaders send them from, behind the result.

    All chunks but the last have the same length. A stripe consists of whole lines, and therefore of
    whole elements.
    """
    nodes, size_bytes = comm.nodes, contribution_bytes(call)
    stripes = nodes.nodes * nodes.lanes_now
    chunks = -(-size_bytes // (stripes * _largest_stripe(comm)))
    line_bytes = stripes * STRIPE_LINE_BYTES
    length = min(-(-size_bytes // (chunks * line_bytes)) * line_bytes, size_bytes - begin)
    if is_flat(comm):
        return Chunk(begin, length, call.recv + begin, 0)
    chunk = Chunk(begin, length, next_half(nodes), 0)
    for stripe in range(stripes):
        place = stripes + stripe * comm.node.size + comm.node.rank
        source = call.send + begin + _begin_of(nodes, chunk, stripe)
        target = chunk.buffer + place * _stripe_bytes(nodes, chunk)
        move(target, source, _bytes_of(nodes, chunk, stripe))
    return chunk


@routine
def _largest_stripe(comm):
    """Return the bytes of the largest stripe for which a half has room; the same on all nodes.

    On a flat communicator there would be room for stripes three times as large, but larger chunks
    do not stay in caches.
    """
    nodes = comm.nodes
    parts = nodes.lanes_now * (nodes.nodes * nodes.widest + comm.size + nodes.nodes)
    return nodes.half_bytes // parts // STRIPE_LINE_BYTES * STRIPE_LINE_BYTES


@routine
def _stripe_of(nodes, node):
    """Return the number of the stripe that a node's leader in this lane folds."""
    return node * nodes.lanes_now + nodes.lane


@routine
def _stripe_bytes(nodes, chunk):
    """Return the bytes of each stripe of a chunk but the last."""
    lines = -(-chunk.length // STRIPE_LINE_BYTES)
    return -(-lines // (nodes.nodes * nodes.lanes_now)) * STRIPE_LINE_BYTES


@routine
def _begin_of(nodes, chunk, stripe):
    """Return where a stripe begins in the chunk."""
    return min(stripe * _stripe_bytes(nodes, chunk), chunk.length)


@routine
def _bytes_of(nodes, chunk, stripe):
    return _begin_of(nodes, chunk, stripe + 1) - _begin_of(nodes, chunk, stripe)


@routine
def _reduce_stripes(comm, call, chunk):
    """As a leader, reduce this lane's stripes of a chunk."""
    nodes, stripe_bytes = comm.nodes, _stripe_bytes(comm.nodes, chunk)
    if is_flat(comm):
        received = next_half(nodes)
        outcome = _scatter(comm, call.send + chunk.begin, received, chunk)
    else:
        stripes = nodes.nodes * nodes.lanes_now
        contributed = chunk.buffer + stripes * stripe_bytes
        in_lanes = stripes * comm.node.size + nodes.lane * comm.size
        received = contributed + in_lanes * stripe_bytes
        outcome = _scatter_node(comm, contributed, received, stripe_bytes)
    if outcome == OK:  # if send is recv: the bytes that are overwritten now have been sent
        outcome = _fold_and_spread(comm, call, chunk, received)
    return outcome


@routine
def _scatter(comm, source, target, chunk):
    """Give leader k stripe k of this rank's chunk, on a flat communicator."""
    nodes, stripe_bytes = comm.nodes, _stripe_bytes(comm.nodes, chunk)
    own_bytes = _bytes_of(nodes, chunk, nodes.own_node)
    for k in range(nodes.nodes):
        set_send(nodes, k, _bytes_of(nodes, chunk, k), _begin_of(nodes, chunk, k))
        set_recv(nodes, k, own_bytes, k * stripe_bytes)
    return run(nodes.alltoallv, comm, Scatter(source, target))


@routine
def _scatter_node(comm, source, target, stripe):
    """Give each leader its stripe of all chunks of this node; the last stripe may be padded."""
    nodes, send_bytes = comm.nodes, comm.node.size * stripe
    for k in range(nodes.nodes):
        set_send(nodes, k, send_bytes, _stripe_of(nodes, k) * send_bytes)
        set_recv(nodes, k, ranks_of(nodes, k) * stripe, nodes.node_starts[k] * stripe)
    return run(nodes.alltoallv, comm, Scatter(source, target))


@routine
def _fold_and_spread(comm, call, chunk, received):
    """Fold this leader's stripe of all contributions; gather the stripes of its lane's leaders."""
    nodes, own = comm.nodes, _stripe_of(comm.nodes, comm.nodes.own_node)
    target = chunk.buffer + _begin_of(nodes, chunk, own)
    span = _bytes_of(nodes, chunk, own), _stripe_bytes(nodes, chunk)
    _fold_contributions(comm, call, target, received, span)
    for k in range(nodes.nodes):
        stripe = _stripe_of(nodes, k)
        set_block(nodes, k, _bytes_of(nodes, chunk, stripe), _begin_of(nodes, chunk, stripe))
    return run(nodes.allgatherv, comm, Gather(chunk.buffer, 1))


@routine
def _fold_contributions(comm, call, target, received, span):
    """Fold the contributions of all ranks, which lie in node order, into ``target``.

    ``span`` is the length of a contribution, and the distance from one contribution to the next. If
    other ranks of the node may fold into the same memory, this rank folds in memory of its own, and
    only the result goes to ``target``.
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
