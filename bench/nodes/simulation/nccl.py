"""The algorithms of NCCL between nodes, in our terms: ranks with a core in place of a GPU.

A ring goes through all ranks, node by node, so that a cable carries it once in each direction
(``src/graph/rings.cc``). Several channels are several rings, each with a part of every block. An
allreduce goes twice around it, or up and down a double binary tree of nodes, each of the trees with
half of the payload, whose ranks are a chain in each node (``src/graph/trees.cc``). ``tuning.cc``
takes the way with less time by a formula; here that is the less of both simulated times. Pieces are
of CHUNK_BYTES: NCCL cuts a buffer of 4 MiB into 8 steps, and for payloads like these into less.
"""

from __future__ import annotations

from functools import cache

from bench.nodes.simulation.cluster import Node
from bench.nodes.simulation.events import Servers, Signal, Steps
from bench.nodes.simulation.verbs import transfer

CHUNK_BYTES = 128 * 1024


def allgatherv(node: Node, nbytes: int, channels: int) -> Steps:
    """Gather so many bytes from all ranks together."""
    block = nbytes / node.at.size
    yield from _rings(node, round(block * (node.at.size - 1)), block, channels, folds=False)


def ring_allreduce(node: Node, nbytes: int, channels: int) -> Steps:
    """Reduce and scatter around the ring, then gather."""
    block = nbytes / node.at.size
    yield from _rings(node, round(2 * block * (node.at.size - 1)), block, channels, folds=True)


def _rings(node: Node, nbytes: int, block: float, channels: int, folds: bool) -> Steps:
    inside = Servers(node.cluster.clock)
    parts = (_Ring(node, number, nbytes // channels, block / channels, folds, inside).steps()
             for number in range(channels))  # fmt: skip
    yield from node.cluster.clock.together(parts)


class _Ring:
    """A ring through the ranks of a node: the first receives, the last one sends.

    ``nbytes`` cross each link of it, block by block. All ranks copy them ``inside`` the node.
    """

    def __init__(
        self, node: Node, channel: int, nbytes: int, block: float, folds: bool, inside: Servers
    ) -> None:
        self._node, self._nbytes, self._inside = node, nbytes, inside
        self._sender, self._receiver = node.lane(2 * channel), node.lane(2 * channel + 1)
        piece = min(max(block, 1.0), CHUNK_BYTES)
        self._hop = node.at.step + piece / node.at.copy + folds * piece / node.at.fold
        self._block, self._has_come, self._at_end = block, Signal(), 0

    def steps(self) -> Steps:
        clock = self._node.cluster.clock
        for rank in range(self._node.at.ranks):  # blocks of the node's own ranks, the last first
            clock.after(rank * self._hop, lambda: self._reach_end(self._block))
        yield from clock.together([self._send(), self._receive()])

    def _reach_end(self, count: float) -> None:
        self._at_end += count
        self._has_come.give()

    def _send(self) -> Steps:
        following, sent = (self._node.number + 1) % self._node.at.nodes, 0
        while sent < self._nbytes:
            left = min(round(self._at_end) - sent, self._nbytes - sent, CHUNK_BYTES)
            if left <= 0:
                yield self._has_come
                continue
            # Both ends of a link are of the same lane, and a ring has two: that of its senders.
            yield from transfer(self._sender, {following: left}, {})
            sent += left

    def _receive(self) -> Steps:
        at, clock = self._node.at, self._node.cluster.clock
        previous, left = (self._node.number - 1) % at.nodes, self._nbytes
        stream, inner = self._sender.source(previous), (at.ranks - 1) * self._hop
        while left > 0:
            count = min(stream.here, left, CHUNK_BYTES)
            if count == 0:
                yield self._sender.signal
                continue
            yield from self._receiver.work(at.message + count / (2 * at.socket))
            stream.read(count)
            left -= count
            passing = self._inside.delay(count / at.copy_of_all)
            clock.after(inner + passing, lambda count=count: self._reach_end(count))


def tree_allreduce(node: Node, nbytes: int, channels: int) -> Steps:
    """Reduce up two trees and broadcast down them; each has ``channels`` threads a direction."""
    inside = Servers(node.cluster.clock)
    parts = (_Tree(node, number, channels, nbytes // (2 * channels), inside).steps()
             for number in range(2 * channels))  # fmt: skip
    yield from node.cluster.clock.together(parts)


class _Tree:
    """One of the two trees of nodes, for one channel."""

    def __init__(
        self, node: Node, number: int, channels: int, nbytes: int, inside: Servers
    ) -> None:
        nodes, own = node.at.nodes, node.number
        self._node, self._inside = node, inside
        self._up, self._down = node.lane(2 * number), node.lane(2 * number + 1)
        is_mirrored = number >= channels
        mirror = (lambda k: nodes - 1 - k) if is_mirrored else (lambda k: k)
        parent, children = links_of(nodes)[mirror(own)]
        self._parent = None if parent is None else mirror(parent)
        self._children = [mirror(child) for child in children]
        self._pieces = [min(CHUNK_BYTES, nbytes - begin) for begin in range(0, nbytes, CHUNK_BYTES)]
        self._reduced, self._has_reduced = 0, Signal()

    def steps(self) -> Steps:
        yield from self._node.cluster.clock.together([self._go_up(), self._go_down()])

    def _inner(self, piece: int) -> float:
        """Return the seconds in which a piece passes the ranks of a node."""
        at = self._node.at
        return (at.ranks - 1) * (at.step + piece / at.copy)

    def _go_up(self) -> Steps:
        at = self._node.at
        for number, piece in enumerate(self._pieces):
            for child in self._children:
                yield from transfer(self._up, {}, {child: piece})
                yield from self._up.fold(piece)
            if number == 0:  # later pieces pass the ranks at the same time
                yield self._inner(piece) + (at.ranks - 1) * piece / at.fold
            yield self._inside.delay(piece / at.copy_of_all)
            if self._parent is None:
                self._reduced += 1
                self._has_reduced.give()
            else:
                yield from transfer(self._up, {self._parent: piece}, {})

    def _go_down(self) -> Steps:
        for number, piece in enumerate(self._pieces):
            if self._parent is None:
                while self._reduced <= number:
                    yield self._has_reduced
            else:
                yield from transfer(self._down, {}, {self._parent: piece})
            for child in self._children:
                yield from transfer(self._down, {child: piece}, {})
            yield self._inside.delay(piece / self._node.at.copy_of_all)
        yield self._inner(self._pieces[-1])


@cache
def links_of(nodes: int) -> list[tuple[int | None, list[int]]]:
    """Return the parent of each node and its children in a binary tree whose leaves are odd.

    The lowest bit of a number is its height. Sanders, Speck, Träff, "Two-tree algorithms for full
    bandwidth broadcast, reduction and scan", 2009.
    """
    links: list[tuple[int | None, list[int]]] = [(None, [])]
    for own in range(1, nodes):
        height = own & -own
        parent = (own & ~height) | height << 1
        links.append((parent if parent < nodes else own & ~height, []))
    for own, (parent, _) in enumerate(links):
        if parent is not None:
            links[parent][1].append(own)
    return links
