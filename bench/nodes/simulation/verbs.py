"""The verbs exchange, alltoallv, allgatherv and broadcast of tcp, as one leader acts in them.

They are the loops of ``tcp/exchange.py`` and ``tcp/ring.py``: a thread sends what there is, reads
what is there, and sleeps if neither has moved a byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.nodes.simulation.choices import SYSCALL_BYTES
from bench.nodes.simulation.cluster import Lane
from bench.nodes.simulation.events import Steps


def to_all(lane: Lane, nbytes: int) -> Steps:
    """Send so many bytes to every other node, and read as many from each."""
    others = [node for node in range(lane.at.nodes) if node != lane.node.number]
    yield from transfer(lane, dict.fromkeys(others, nbytes), dict.fromkeys(others, nbytes))


def transfer(lane: Lane, left_out: dict[int, int], left_in: dict[int, int]) -> Steps:
    """Send to each node the bytes that are left for it, and read those that it sends."""
    own, count = lane.node.number, lane.at.nodes
    nodes = sorted({*left_out, *left_in}, key=lambda node: (node - own) % count)
    while left_out or left_in:
        has_moved = False
        for node in nodes:
            if node in left_out:
                yield from lane.send(node, left_out[node])
                has_moved |= _count(left_out, node, lane.count)
            if node in left_in:
                yield from lane.receive(node, left_in[node])
                has_moved |= _count(left_in, node, lane.count)
        if not has_moved:
            yield lane.signal


def _count(left: dict[int, int], node: int, moved: int) -> bool:
    left[node] -= moved
    if left[node] == 0:
        del left[node]
    return moved > 0


@dataclass
class _Cursor:
    """How far one direction of the ring has come."""

    blocks: Sequence[int]
    block: int
    total: int
    offset: int = 0
    done: int = 0

    def most(self) -> int:
        """Return how many bytes a system call may move: those of one block."""
        while self.offset == self.blocks[self.block] and self.done < self.total:
            self.block, self.offset = (self.block - 1) % len(self.blocks), 0
        return min(self.blocks[self.block] - self.offset, SYSCALL_BYTES, self.total - self.done)

    def count(self, moved: int) -> bool:
        self.offset += moved
        self.done += moved
        return moved > 0


def relay(lane: Lane, blocks: Sequence[int]) -> Steps:
    """Relay the block of every node around the ring; of a broadcast, all but one are empty."""
    own, nodes = lane.node.number, lane.at.nodes
    following, previous = (own + 1) % nodes, (own - 1) % nodes
    outgoing = _Cursor(blocks, own, sum(blocks) - blocks[following])
    incoming = _Cursor(blocks, previous, sum(blocks) - blocks[own])
    while outgoing.done < outgoing.total or incoming.done < incoming.total:
        available = blocks[own] + incoming.done - outgoing.done
        yield from lane.send(following, min(outgoing.most(), available))
        has_moved = outgoing.count(lane.count)
        yield from lane.receive(previous, incoming.most())
        if not incoming.count(lane.count) and not has_moved:
            yield lane.signal
