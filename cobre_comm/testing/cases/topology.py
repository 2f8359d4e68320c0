"""topology: which ranks are on which node; a rank can tell without asking the other ranks."""

import os
import socket

from cobre_comm import InvalidCommunicator
from cobre_comm.testing.cases.case import QUICK, Case
from cobre_comm.testing.cases.raised import raises


def topology(comm):
    """Call topology while others wait, after a split, and after close, when it has to raise."""
    for rank in range(comm.size):
        if comm.rank == rank:
            found = comm.topology()
        comm.barrier()
    with comm.split(0, -comm.rank) as turned:
        other = turned.topology()
    raises(InvalidCommunicator, turned.topology)
    told = repr(found).splitlines()
    assert len(told) >= 2 + len(found.hosts)
    assert any(line.startswith(f"{found.node}*") for line in told)
    own_cpus = tuple(sorted(getattr(os, "sched_getaffinity", lambda _: ())(0)))
    assert len(found.cpus) == len(found.numa) == comm.size
    assert found.cpus[comm.rank] in (own_cpus, ())  # a long list of CPUs is left out
    assert bool(found.numa[comm.rank]) == bool(found.cpus[comm.rank])
    assert found.hosts[found.node] == socket.gethostname()
    own = [comm.size - 1 - rank for rank in found.ranks[found.node]]
    assert other.ranks[other.node] == tuple(sorted(own))
    return found.hosts, found.ranks, found.node, found.cpus, own_cpus


def are_the_nodes(ran):
    nodes = ran.settings.nodes(ran.backend, ran.size)
    right = [tuple(r for r in range(ran.size) if nodes[r] == n) for n in dict.fromkeys(nodes)]
    own = [value[-1] for value in ran.values]
    for rank, (hosts, ranks, node, cpus, _) in enumerate(ran.values):
        assert list(ranks) == right, f"rank {rank} tells {ranks}, should be {right}"
        assert rank in ranks[node]
        assert hosts == ran.values[0][0]
        assert all(told in (own[r], ()) for r, told in enumerate(cpus)), f"{cpus} of {own}"


CASES = [
    Case(
        "topology", topology, callers=(), expect=are_the_nodes, needs=("topology", "split"),
        check=QUICK,
    ),
]  # fmt: skip
