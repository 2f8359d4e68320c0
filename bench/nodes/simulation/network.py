"""Cables, ports of a switch, and the streams of bytes between nodes.

Every node has a cable to a switch that is never busy inside. What leaves a node waits for its turn
on the cable, crosses, waits at the port of the other node, and comes. Streams pass a cable in
packets, so that several of them share it.
"""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass, field

from bench.nodes.simulation.events import Clock, Servers, Signal

PACKET_BYTES = 16 * 1024  # that streams take turns with, and a receiver sees at once
WINDOW_BYTES = 4 * 2**20  # of a stream, sent and not yet read: the buffers of two sockets


@dataclass(frozen=True)
class Network:
    """What a network adds to the terms of a model.

    Attributes
    ----------
    burst_bytes : float
        Bytes of a cable's token bucket, where ``tc`` makes its rate.
    port_bytes : float
        Bytes that may wait at a port. What comes beyond is lost.
    retry : float
        Seconds until a lost packet is sent again.
    jitter : float
        Mean of the seconds that a packet takes longer than another.
    late : float
        Mean of the seconds by which the last rank of a node comes late to a collective.
    seed : int
        Of all random numbers.
    """

    burst_bytes: float = 0.0
    port_bytes: float = math.inf
    retry: float = 0.2
    jitter: float = 0.0
    late: float = 0.0
    seed: int = 0

    @property
    def is_ideal(self) -> bool:
        """Whether nodes that do the same end at the same time."""
        return self.jitter == 0 and self.late == 0 and self.port_bytes == math.inf


class Cable:
    """The cable of a node, in both directions, with its port of the switch."""

    def __init__(self, clock: Clock, bytes_per_s: float, burst_bytes: float) -> None:
        credit = burst_bytes / bytes_per_s
        self.out, self.port = Servers(clock, credit=credit), Servers(clock, credit=credit)
        self.bytes_per_s = bytes_per_s
        self.lost = 0  # packets


@dataclass
class Stream:
    """The bytes from one thread to another one.

    Attributes
    ----------
    moved : Signal
        Given to the receiver when bytes have come.
    has_room : Signal
        Given to the sender when the receiver has read.
    """

    clock: Clock
    network: Network
    source: Cable
    target: Cable
    alpha: float
    moved: Signal
    has_room: Signal
    random: random.Random
    room: int = WINDOW_BYTES
    here: int = 0
    frames: deque[bool] = field(default_factory=deque)  # kinds of frames under way, of a chain
    _sent: int = 0
    _next: int = 0
    _early: dict[int, int] = field(default_factory=dict)

    def send(self, count: int) -> None:
        """Send a packet for which there is room."""
        self.room -= count
        self._leave(self._sent, count)
        self._sent += 1

    def read(self, count: int) -> None:
        """Take bytes that are here."""
        self.here -= count
        self.room += count
        self.has_room.give()

    def _leave(self, number: int, count: int) -> None:
        seconds = count / self.source.bytes_per_s
        begins = max(self.source.out.delay(seconds) - seconds, 0.0)
        if self.network.jitter:
            begins += self.random.expovariate(1 / self.network.jitter)
        self.clock.after(begins + self.alpha, lambda: self._reach_port(number, count))

    def _reach_port(self, number: int, count: int) -> None:
        port, speed = self.target.port, self.target.bytes_per_s
        if port.backlog * speed > self.network.port_bytes:
            self.target.lost += 1
            self.clock.after(self.network.retry, lambda: self._leave(number, count))
            return
        self.clock.after(port.delay(count / speed), lambda: self._come(number, count))

    def _come(self, number: int, count: int) -> None:
        self._early[number] = count
        while self._next in self._early:  # bytes of a stream come in order
            self.here += self._early.pop(self._next)
            self._next += 1
        self.moved.give()
