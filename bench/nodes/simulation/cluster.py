"""Nodes of a cluster: their ranks, and the threads that move bytes between them.

The ranks of a node do the same at the same time, so that one of them stands for all, and only a
thread that leads a lane has a life of its own. If all nodes do the same too, one node stands for
all: what it sends to the node d behind it then comes to itself, as if from d in front of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from bench.nodes.model import HEADERS, Nodes
from bench.nodes.simulation.events import Clock, Servers, Signal, Steps
from bench.nodes.simulation.network import PACKET_BYTES, Cable, Network, Stream


class Cluster:
    """Nodes, cables and streams.

    Parameters
    ----------
    at : Nodes
        The terms.
    network : Network, optional
        What else happens on the network.
    cores : int or None
        Cores that all ranks of all nodes share. None: each rank has a core.
    are_alike : bool
        Whether one node stands for all. That takes nodes that do the same, and no noise.
    """

    def __init__(
        self,
        at: Nodes,
        network: Network | None = None,
        cores: int | None = None,
        are_alike: bool = False,
    ) -> None:
        self.at, self.network, self.are_alike = at, network or Network(), are_alike
        if are_alike and (not self.network.is_ideal or cores):
            raise ValueError("nodes with noise, or on the same cores, are not alike")
        self.clock = Clock()
        self.random = random.Random(self.network.seed)
        self.cores = Servers(self.clock, cores) if cores else None
        speed, burst = HEADERS * at.link, self.network.burst_bytes
        self.cables = [Cable(self.clock, speed, burst) for _ in self.simulated]
        self.nodes = [Node(self, number) for number in self.simulated]
        self._streams: dict[tuple[int, int, int], Stream] = {}

    @property
    def simulated(self) -> range:
        return range(1 if self.are_alike else self.at.nodes)

    def stream(self, lane: int, source: int, target: int) -> Stream:
        """Return the stream from one node to another one in a lane."""
        if self.are_alike:
            key, source, target = (lane, (target - source) % self.at.nodes, 0), 0, 0
        else:
            key = (lane, source, target)
        if key not in self._streams:
            self._streams[key] = Stream(
                self.clock, self.network, self.cables[source], self.cables[target], self.at.alpha,
                moved=self.nodes[target].lane(lane).signal,
                has_room=self.nodes[source].lane(lane).signal, random=self.random,
            )  # fmt: skip
        return self._streams[key]

    def seconds(self, body: Callable[[Node], Steps]) -> float:
        """Return how long all nodes take to do something, from when the first could begin."""
        processes = [self.clock.start(body(node)) for node in self.nodes]
        seconds = self.clock.run()
        if not all(process.has_ended for process in processes):
            raise RuntimeError(f"nodes wait for each other for ever, {seconds} s after they began")
        return seconds


class Node:
    """The ranks of a node."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.cluster, self.at, self.number = cluster, cluster.at, number
        self._lanes: dict[int, Lane] = {}

    def lane(self, number: int) -> Lane:
        """Return the thread that leads this node in a lane."""
        if number not in self._lanes:
            self._lanes[number] = Lane(self, number)
        return self._lanes[number]

    def arrive(self) -> Steps:
        """Wait for the last rank of the node, which may be late."""
        if self.cluster.network.late:
            yield self.cluster.random.expovariate(1 / self.cluster.network.late)

    def step(self) -> Steps:
        """Go through a step of shared memory."""
        yield from self._by_all(self.at.step, self.at.step)

    def copy(self, nbytes: float, ranks: int | None = None) -> Steps:
        """Let every rank copy so many bytes, or so many ranks."""
        yield from self._by_all(nbytes / self.at.copy, nbytes / self.at.copy_of_all, ranks)

    def fold(self, nbytes: float) -> Steps:
        """Let every rank fold so many bytes into others."""
        yield from self._by_all(nbytes / self.at.fold, nbytes / self.at.fold)

    def lead(self, lanes: int, steps_of: Callable[[Lane], Steps], others: Steps) -> Steps:
        """Let the threads of lanes do something, and the others something else, all at once."""
        leads = (steps_of(self.lane(number)) for number in range(lanes))
        yield from self.cluster.clock.together([*leads, others])

    def _by_all(self, alone: float, together: float, ranks: int | None = None) -> Steps:
        """Spend time on every rank: ``alone`` with a core of its own, ``together`` at once."""
        cores, ranks = self.cluster.cores, self.at.ranks if ranks is None else ranks
        if cores is None:
            yield together if ranks > 0 else 0.0
        else:
            yield max((cores.delay(alone) for _ in range(ranks)), default=0.0)


class Lane:
    """The thread of a rank that leads its node in a lane.

    Attributes
    ----------
    signal : Signal
        Given when bytes have come, or when there is room for others.
    """

    def __init__(self, node: Node, number: int) -> None:
        self.node, self.at, self.number, self.signal = node, node.at, number, Signal()

    def work(self, seconds: float) -> Steps:
        """Keep the thread busy."""
        cores = self.node.cluster.cores
        yield seconds if cores is None else cores.delay(seconds)

    def fold(self, nbytes: float) -> Steps:
        """Fold so many bytes into others."""
        yield from self.work(nbytes / self.at.fold)

    def send(self, node: int, count: int) -> Steps:
        """Send up to so many bytes; ``self.count`` says how many there was room for.

        Packets leave one after the other, while the system call copies.
        """
        stream = self.to(node)
        self.count = left = min(count, stream.room)
        overhead = self.at.message
        while left > 0:
            part = min(left, PACKET_BYTES)
            yield from self.work(overhead + self._copying(part))
            stream.send(part)
            overhead, left = 0.0, left - part

    def receive(self, node: int, count: int) -> Steps:
        """Read up to so many bytes; ``self.count`` says how many were here."""
        stream = self.source(node)
        self.count = min(count, stream.here)
        if self.count > 0:
            yield from self.work(self.at.message + self._copying(self.count))
            stream.read(self.count)

    def to(self, node: int) -> Stream:
        return self.node.cluster.stream(self.number, self.node.number, node)

    def source(self, node: int) -> Stream:
        return self.node.cluster.stream(self.number, node, self.node.number)

    def _copying(self, count: int) -> float:
        """Return the seconds of copies by the kernel: a thread that sends receives as much."""
        return count / (2 * self.at.socket)
