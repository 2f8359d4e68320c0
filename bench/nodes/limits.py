"""Up to where each choice of the engine is right, by the formulas."""

from __future__ import annotations

import math

from bench.nodes.model import HEADERS, chain, ring, stripes
from bench.nodes.terms import GBITS, cluster
from bench.report.text import number, table


def limits() -> str:
    """Return the table of the numbers up to which a choice is right, at 25 and 100 Gb/s."""
    rows = []
    for choice, unit, number_of in LIMITS:
        found = [number_of(gbits) for gbits in GBITS]
        rows.append([choice, unit, *(number(each) if each else "never" for each in found)])
    return table(["choice", "is right up to", *(f"{g} Gb/s" for g in GBITS)], rows)


def _last(holds, values) -> float:
    """Return the last value before the first that no longer holds; 0 if all do."""
    before = None
    for value in values:
        if not holds(value):
            return before or value
        before = value
    return 0


def _mesh(gbits: float) -> float:
    """Return the largest number of nodes for which all to all beats log2(nodes) rounds in pairs."""

    def holds(nodes: int) -> bool:
        at = cluster(nodes, 1, gbits)
        return 2 * (nodes - 1) * at.message <= (math.log2(nodes) - 1) * at.alpha

    return _last(holds, range(8, 4096))


def _ring_of_pieces(gbits: float) -> float:
    """Return the largest number of nodes for which the hops of a ring take less than its bytes."""

    def holds(nodes: int) -> bool:
        at = cluster(nodes, 64, gbits)
        return ring(at, 0) <= at.half / at.stream

    return _last(holds, range(2, 4096))


def _chain(gbits: float) -> float:
    """Return the largest number of ranks on each of 16 nodes for which chain beats stripes."""

    def holds(ranks: int) -> bool:
        at = cluster(16, ranks, gbits)
        return chain(at, 16e6) <= stripes(at, 16e6)

    return _last(holds, range(2, 257))


def _folding(gbits: float) -> float:
    """Return the number of ranks whose contributions a leader folds while two payloads pass."""
    at = cluster(16, 1, gbits)
    return 2 * at.fold / at.stream


def _copying(gbits: float) -> float:
    """Return the number of ranks that can copy a payload out while it crosses the cable."""
    at = cluster(16, 1, gbits)
    return at.memory / at.stream


def _eager(gbits: float) -> float:
    """Return the KiB up to which a root that sends to all is faster than the ring."""
    at = cluster(16, 1, gbits)
    return (at.alpha + at.message) * at.stream * (at.nodes - 1) / (at.nodes - 2) / 1024


LIMITS = [
    ("eager broadcast", "KiB", _eager),
    ("mesh: a barrier of all to all", "nodes", _mesh),
    ("staging buffer, for a ring", "nodes", _ring_of_pieces),
    ("chain, with that staging buffer", "ranks a node", _chain),
    ("one leader folds", "ranks a node", _folding),
    ("each rank copies all out", "ranks a node", _copying),
    (
        "one leader, one thread",
        "Gb/s of a cable",
        lambda gbits: cluster(2, 1, gbits).socket * 8e-9 / HEADERS,
    ),
]
