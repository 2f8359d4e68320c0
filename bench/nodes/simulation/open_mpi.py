"""The algorithms that Open MPI 5.0 takes for large payloads over many ranks, in our terms.

The rules are those of coll/tuned (``coll_tuned_decision_fixed.c`` of v5.0.9), which allgatherv
takes, and of coll/han (``coll_han_component.c``), which has more priority and takes allreduce. For
1024 ranks and more, an allgatherv with blocks from 4 KiB is a neighbour exchange, with smaller ones
a Bruck. han cuts an allreduce into segments of 64 KiB. Each is reduced in every node, reduced and
broadcast between leaders by libnbc (``nbc_ireduce.c``, ``nbc_ibcast.c``), and broadcast in every
node, while the next one follows. Without han, coll/tuned takes Rabenseifner's algorithm.

Ranks of a node take their steps together. A message between them is one copy by its receiver.
"""

from __future__ import annotations

from bench.nodes.simulation.cluster import Lane, Node
from bench.nodes.simulation.collectives import repeat
from bench.nodes.simulation.events import Steps
from bench.nodes.simulation.verbs import transfer

BRUCK_BYTES = 4096  # below that, of a block
HAN_SEGMENT_BYTES = 64 * 1024
CHAIN_BYTES = 8 * 1024  # that libnbc passes on at once, for such a segment


def allgatherv(node: Node, nbytes: int) -> Steps:
    """Gather so many bytes from all ranks together. The rule takes the mean of all blocks."""
    block = nbytes / node.at.size
    yield from _bruck(node, block) if block < BRUCK_BYTES else _neighbours(node, block)


def _bruck(node: Node, block: float) -> Steps:
    """Double the distance step by step; a rank sends all that it has."""
    ranks, distance = node.at.ranks, 1
    while distance < node.at.size:
        nbytes = round(block * min(distance, node.at.size - distance))
        far, crossing = max(distance // ranks, 1), min(distance, ranks)
        yield from _step(node, crossing, (-far, far), nbytes)
        distance *= 2


def _neighbours(node: Node, block: float) -> Steps:
    """Exchange the two latest blocks with each neighbour in turn.

    Ranks of a node are even in number, so two of them cross to other nodes in every other step.
    """
    two = round(2 * block)

    def pair_of_steps(nbytes: int, is_first: bool) -> Steps:
        del is_first
        yield from _step(node, 0, (0, 0), nbytes)
        yield from _step(node, 2, (1, -1), nbytes)

    yield from repeat(node, [two] * (node.at.size // 4), pair_of_steps)


def _step(node: Node, crossing: int, offsets: tuple[int, int], nbytes: int) -> Steps:
    """Let some ranks send to one node and receive from another, and the rest among themselves."""
    target, source = ((node.number + offset) % node.at.nodes for offset in offsets)

    def cross(number: int) -> Steps:
        lane = node.lane(number)
        yield from transfer(lane, {target: nbytes}, {source: nbytes})

    parts = [cross(number) for number in range(crossing)]
    if crossing < node.at.ranks:
        parts.append(_inside(node, nbytes))
    yield from node.cluster.clock.together(parts)


def _inside(node: Node, nbytes: float) -> Steps:
    yield from node.step()
    yield from node.copy(nbytes)


def allreduce(node: Node, nbytes: int) -> Steps:
    """Reduce by han, segment after segment."""
    at = node.at
    levels = max(at.ranks - 1, 0).bit_length()

    def segment(count: int, is_first: bool) -> Steps:
        del is_first
        between = [_reduce(node.lane(0), count), _chain(node.lane(1), count)]
        yield from node.cluster.clock.together([*between, within(count)])

    def within(count: int) -> Steps:
        for _ in range(levels):  # up a binomial tree, and down
            yield from _inside(node, count)
            yield from node.fold(count)
            yield from _inside(node, count)

    segments = -(-nbytes // HAN_SEGMENT_BYTES)
    yield from repeat(node, [HAN_SEGMENT_BYTES] * (segments + 3), segment)  # 3 fill the pipeline


def _reduce(lane: Lane, nbytes: int) -> Steps:
    """Halve vectors with nodes at twice the distance, step by step; gather the parts at node 0."""
    own, nodes, count = lane.node.number, lane.at.nodes, nbytes // 2
    distance = 1
    while distance < nodes:
        yield from transfer(lane, {own ^ distance: count}, {own ^ distance: count})
        yield from lane.fold(count)
        distance, count = 2 * distance, count // 2
    while distance > 1:
        distance, count = distance // 2, max(2 * count, 1)
        if own % (2 * distance) == distance:
            yield from transfer(lane, {own - distance: count}, {})
        elif own % (2 * distance) == 0:
            yield from transfer(lane, {}, {own + distance: count})


def _chain(lane: Lane, nbytes: int) -> Steps:
    """Pass pieces from node to node."""
    own, last = lane.node.number, lane.at.nodes - 1
    for _ in range(0, nbytes, CHAIN_BYTES):
        if own > 0:
            yield from transfer(lane, {}, {own - 1: CHAIN_BYTES})
        if own < last:
            yield from transfer(lane, {own + 1: CHAIN_BYTES}, {})


def rabenseifner(node: Node, nbytes: int) -> Steps:
    """Reduce without han: halve vectors among the ranks of a node, then between nodes; and back."""
    yield from _both_ways(node, nbytes, folds=True)
    yield from _both_ways(node, nbytes, folds=False)


def _both_ways(node: Node, nbytes: int, folds: bool) -> Steps:
    """Go through the steps of a reduce-scatter, or through those of an allgather, backwards."""
    distances = [2**step for step in range((node.at.size - 1).bit_length())]
    steps = [(distance, nbytes // (2 * distance)) for distance in distances]
    for distance, count in steps if folds else reversed(steps):
        if distance < node.at.ranks:
            yield from _inside(node, count)
        else:
            far = distance // node.at.ranks  # to one node and from another: as long as in pairs
            crossing = node.at.ranks
            yield from _step(node, crossing, (far, -far), max(count, 1))
        if folds:
            yield from node.fold(count)
