"""Formulas for the time of a collective between nodes.

docs/design/scale.md says what the terms mean and where their numbers come from. A leader moves
bytes through sockets in one thread, so it, or the cable, is what limits a stream.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cobre_kernels.nodes.allreduce import chain_pays

from bench.ranks.work import CUT_BYTES, POINT, STAGES, TRAJECTORIES

MIB = 2**20
EAGER_BYTES = 8192  # of a node, between machines
GATHER_BYTES = 16384  # of a contribution to an allreduce; above, chain or stripes
PIECE_BYTES = (128 * 1024, 256 * 1024)  # of the chain's pipeline
PIECES = 4
HEADERS = 1448 / 1514  # payload of a full frame of a cable


@dataclass(frozen=True)
class Nodes:
    """Nodes and their cables; times in seconds, speeds in bytes a second.

    Attributes
    ----------
    nodes, ranks : int
        Number of nodes, and of ranks on each.
    alpha : float
        Seconds from the send of one leader until another one has read the message.
    message : float
        Seconds that a leader spends on one message to one other.
    step : float
        Seconds of a step of shared memory among the ranks of a node.
    link : float
        Speed of a cable, in each direction.
    socket : float
        Speed at which one leader sends, while it receives as much.
    copy, memory : float
        Speed of copies by one rank, and by all ranks of a node together.
    fold : float
        Speed of folding a contribution into a sum.
    half : int
        Bytes of half a staging buffer.
    lanes : int
        Ranks of a node that move bytes between nodes.
    """

    nodes: int
    ranks: int
    alpha: float
    message: float
    step: float
    link: float
    socket: float
    copy: float
    memory: float
    fold: float
    half: int = 2 * MIB
    lanes: int = 1

    @property
    def size(self) -> int:
        return self.nodes * self.ranks

    @property
    def stream(self) -> float:
        return min(HEADERS * self.link, self.lanes * self.socket)

    @property
    def copy_of_all(self) -> float:
        """Speed of copies by each rank, while all ranks of its node copy."""
        return min(self.copy, self.memory / self.ranks)


def barrier(at: Nodes) -> float:
    """Return the seconds of a barrier: a step, every leader to every leader, a step."""
    if at.nodes == 1:
        return at.step
    return 2 * at.step + at.alpha + 2 * (at.nodes - 1) * at.message


def ring(at: Nodes, nbytes: float) -> float:
    """Return the seconds in which a leader passes ``nbytes`` on around the ring."""
    return (at.nodes - 1) * (at.alpha + at.message) + nbytes / at.stream


def allgatherv(at: Nodes, nbytes: float, private: bool = True) -> float:
    """Return the seconds of an allgatherv of ``nbytes`` from all ranks together.

    ``private``: a rank copies all of it out of the staging buffer. Between regions that hold the
    data already, leaders move it at once.
    """
    crossing = nbytes * (at.nodes - 1) / at.nodes
    if nbytes / at.nodes <= EAGER_BYTES:
        return barrier(at) + crossing / at.stream
    if at.ranks == 1 or not private:
        return barrier(at) + ring(at, crossing)
    rounds = math.ceil(nbytes / at.half)
    wire = rounds * (ring(at, 0) + 2 * at.step) + crossing / at.stream
    copies = nbytes / at.size / at.copy_of_all + nbytes / at.copy_of_all
    return barrier(at) + wire + copies


def broadcast(at: Nodes, nbytes: float, private: bool = True) -> float:
    """Return the seconds of a broadcast."""
    if nbytes <= EAGER_BYTES:
        return barrier(at) + nbytes / at.stream
    if at.ranks == 1 or not private:
        return barrier(at) + ring(at, nbytes)
    rounds = math.ceil(nbytes / at.half)
    wire = rounds * (ring(at, 0) + 2 * at.step) + nbytes / at.stream
    return barrier(at) + wire + nbytes / at.copy + nbytes / at.copy_of_all


def allreduce(at: Nodes, nbytes: float) -> float:
    """Return the seconds of an allreduce: all to all, along the chain, or in stripes."""
    if nbytes <= min(GATHER_BYTES, at.half // at.size):
        crossing = (at.size - at.ranks) * nbytes
        eager = at.ranks * nbytes <= EAGER_BYTES
        wire = crossing / at.stream if eager else ring(at, crossing)
        return barrier(at) + wire + at.size * nbytes / at.fold
    has_chain = at.ranks > 1 and chain_pays.py_func(at.nodes, at.ranks, at.lanes, at.half)
    return chain(at, nbytes) if has_chain else stripes(at, nbytes)


def chain(at: Nodes, nbytes: float) -> float:
    """Return the seconds of a fold from node to node, and of its result around the ring."""
    chunk = min(at.half // (at.ranks + 1), nbytes)
    rounds = math.ceil(nbytes / chunk)
    piece = min(max(chunk / PIECES, PIECE_BYTES[0]), PIECE_BYTES[1], chunk)
    folding = at.ranks * piece / (at.fold * at.lanes)
    stage = max(piece / at.stream * (1 if at.nodes == 2 else 2), folding)
    first = (at.nodes - 1) * (2 * (at.alpha + at.message + piece / at.stream) + folding)
    rest = (chunk / piece - 1) * stage
    return barrier(at) + rounds * (first + rest + 2 * at.step + 2 * chunk / at.copy_of_all)


def stripes(at: Nodes, nbytes: float) -> float:
    """Return the seconds in which each leader folds a stripe of all contributions."""
    parts = at.nodes * at.ranks + at.size + at.nodes
    rounds = math.ceil(nbytes / (at.nodes * (at.half // parts)))
    crossing = (at.ranks + 1) * nbytes * (at.nodes - 1) / at.nodes / at.stream
    scatter = at.alpha + 2 * (at.nodes - 1) * at.message
    copies = (at.ranks > 1) * 2 * nbytes / at.copy_of_all
    folding = at.ranks * nbytes / (at.fold * at.lanes)
    each = scatter + ring(at, 0) + 2 * at.step
    return barrier(at) + rounds * each + crossing + copies + folding


def iteration(at: Nodes, times: float = 1.0, private: bool = True) -> float:
    """Return the seconds of the documents' SDDP iteration, with ``times`` as many bytes."""
    points = times * STAGES * TRAJECTORIES * POINT * 8
    cuts = times * TRAJECTORIES * CUT_BYTES
    gathered = allgatherv(at, points, private) + (STAGES - 1) * allgatherv(at, cuts, private)
    return gathered + allreduce(at, 32) + allreduce(at, 8)
