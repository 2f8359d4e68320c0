"""The terms of docs/design/scale.md, in numbers: of this machine, and of a cluster."""

from __future__ import annotations

from bench.nodes.figures import bits_per_s
from bench.nodes.model import Nodes
from bench.nodes.simulation.network import Network
from tests.network.hosts import BURST_BYTES, QUEUE

CORES, SWITCH, ALPHA, MESSAGE = 2, 4e-6, 3e-6, 1e-6
SOCKET, COPY, FOLD = 1.0e9, 6e9, 3e9
GBITS = [25, 100]


def bench_of(nodes: int, ranks: int, rate: str) -> Nodes:
    """Return the nodes of `python -m bench.nodes`, which share the cores of this machine."""
    return Nodes(
        nodes, ranks, ALPHA, MESSAGE, SWITCH, bits_per_s(rate) / 8, SOCKET, COPY, COPY * CORES, FOLD
    )


def shaped(at: Nodes) -> Network:
    """Return the network between them, which ``tc`` makes."""
    queue_s = 1e-3 * float(QUEUE.removesuffix("ms"))
    return Network(burst_bytes=BURST_BYTES, port_bytes=queue_s * at.link)


def cluster(nodes: int, ranks: int, gbits: float, lanes: int = 1) -> Nodes:
    """Return nodes of a cluster: a core for each rank, memory of a server, TCP of its kernel."""
    return Nodes(
        nodes, ranks, alpha=20e-6, message=2e-6, step=1e-6 if ranks <= 16 else 2e-6,
        link=gbits * 1e9 / 8, socket=2.5e9, copy=8e9, memory=200e9, fold=6e9, lanes=lanes,
    )  # fmt: skip
