"""Simulate a collective between nodes.

    python -m bench.nodes.simulate --nodes 16 --ranks 64 --gbits 100 --lanes 4 [--late 1e-3]

Terms are those of docs/design/scale.md. The simulation acts message by message as the engine does,
and asks the engine for all its choices.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache, partial

from bench.nodes.model import Nodes
from bench.nodes.simulation import collectives, nccl, open_mpi
from bench.nodes.simulation.choices import gathers_all, goes_along_chain, lanes_of, with_half
from bench.nodes.simulation.cluster import Cluster, Node
from bench.nodes.simulation.events import Steps
from bench.nodes.simulation.network import Network
from bench.nodes.terms import cluster
from bench.ranks.work import CUT_BYTES, POINT, STAGES, TRAJECTORIES

POINTS_BYTES = STAGES * TRAJECTORIES * POINT * 8
CUTS_BYTES = TRAJECTORIES * CUT_BYTES


def seconds_of(
    operation: str,
    nbytes: int,
    at: Nodes,
    *,
    private: bool = True,
    network: Network | None = None,
    cores: int | None = None,
) -> float:
    """Return the seconds of a collective.

    Parameters
    ----------
    operation : str
        ``barrier``, ``allgatherv``, ``broadcast``, ``sum``, or ``sddp``: a whole iteration.
    nbytes : int
        Of all ranks in an allgatherv, else of each.
    at : Nodes
        The terms.
    private : bool
        Whether each rank receives into memory of its own, or all of a node into a region.
    network : Network, optional
        What else happens on the network.
    cores : int, optional
        Cores that all ranks share; else each has one.
    """
    once = partial(_seconds, at=with_half(at), network=network or Network(), cores=cores)
    if operation != "sddp":
        return once(operation, nbytes, at.size, private)
    givers = min(at.size, TRAJECTORIES)
    points = once("allgatherv", POINTS_BYTES, givers, private)
    cuts = once("allgatherv", CUTS_BYTES, givers, private)
    bounds = once("sum", 32, 1, True) + once("sum", 8, 1, True)
    return points + (STAGES - 1) * cuts + bounds


def seconds_of_other(name: str, operation: str, nbytes: int, at: Nodes) -> float:
    """Return the seconds of another library's algorithm; its name is one of ``OTHERS``."""
    if operation == "sddp":
        points, cuts = (
            OTHERS["sddp"][name](count, with_half(at)) for count in (POINTS_BYTES, CUTS_BYTES)
        )
        return points + (STAGES - 1) * cuts  # two sums of a few bytes are left out
    return OTHERS[operation][name](nbytes, with_half(at))


def _of_all(body: Callable[..., Steps], *words: int) -> Callable[[int, Nodes], float]:
    """Return a function of bytes and terms: the seconds of an algorithm in which nodes differ."""
    return lambda nbytes, at: Cluster(at).seconds(lambda node: body(node, nbytes, *words))


def _of_one(body: Callable[..., Steps], *words: int) -> Callable[[int, Nodes], float]:
    """Return such a function, of an algorithm in which nodes are alike."""
    return lambda nbytes, at: Cluster(at, are_alike=True).seconds(
        lambda node: body(node, nbytes, *words)
    )


def _best_of_nccl(nbytes: int, at: Nodes) -> float:
    ways = (
        _of_one(nccl.ring_allreduce, CHANNELS),
        _of_all(nccl.tree_allreduce, CHANNELS),
    )
    return min(way(nbytes, at) for way in ways)


CHANNELS = 4
OTHERS: dict[str, dict[str, Callable[[int, Nodes], float]]] = {
    "sddp": {
        "Open MPI": _of_one(open_mpi.allgatherv),
        "NCCL, 1 channel": _of_one(nccl.allgatherv, 1),
        "NCCL, 4 channels": _of_one(nccl.allgatherv, CHANNELS),
    },
    "sum": {
        "Open MPI": _of_all(open_mpi.allreduce),
        "Open MPI without han": _of_one(open_mpi.rabenseifner),
        "NCCL, 4 channels": _best_of_nccl,
    },
}


@cache
def _seconds(
    operation: str,
    nbytes: int,
    givers: int,
    private: bool,
    at: Nodes,
    network: Network,
    cores: int | None,
) -> float:
    bodies: dict[str, Callable[[Node], Steps]] = {
        "barrier": collectives.barrier,
        "allgatherv": lambda node: collectives.allgatherv(node, nbytes, givers, private),
        "broadcast": lambda node: collectives.broadcast(node, nbytes, private),
        "sum": lambda node: collectives.allreduce(node, nbytes),
    }
    are_alike = not (_differ(operation, nbytes, at) or cores) and network.is_ideal
    return Cluster(at, network, cores, are_alike).seconds(bodies[operation])


def _differ(operation: str, nbytes: int, at: Nodes) -> bool:
    """Tell whether nodes differ: where data have a way, from one to the next."""
    if operation != "sum" or gathers_all(at, nbytes):
        return operation == "broadcast"
    return goes_along_chain(at, lanes_of(at, nbytes)) or at.size == 2


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m bench.nodes.simulate", description=__doc__)
    parser.formatter_class = raw
    add = parser.add_argument
    add("--nodes", type=int, default=16)
    add("--ranks", type=int, default=64, help="on each node")
    add("--gbits", type=float, default=100, help="of each cable and direction")
    add("--lanes", type=int, default=1)
    add("--jitter", type=float, default=0.0, help="mean of a message's, in s")
    add("--late", type=float, default=0.0, help="mean of the last rank of a node, in s")
    add("--seed", type=int, default=0)
    options = parser.parse_args()
    at = cluster(options.nodes, options.ranks, options.gbits, options.lanes)
    network = Network(jitter=options.jitter, late=options.late, seed=options.seed)
    for label, operation, nbytes, private in ROWS:
        seconds = seconds_of(operation, nbytes, at, private=private, network=network)
        print(f"{label:32} {1e3 * seconds:10.3f} ms")


ROWS = [
    ("barrier", "barrier", 0, True),
    ("allreduce 32 B", "sum", 32, True),
    ("allreduce 16 MB", "sum", 16_000_000, True),
    ("allgatherv 64 MB", "allgatherv", 64_000_000, True),
    ("allgatherv 64 MB into regions", "allgatherv", 64_000_000, False),
    ("broadcast 64 MB", "broadcast", 64_000_000, True),
    ("broadcast 64 MB into regions", "broadcast", 64_000_000, False),
    ("SDDP iteration", "sddp", 0, True),
    ("SDDP iteration into regions", "sddp", 0, False),
]

if __name__ == "__main__":
    main()
