"""Asks MPI which ranks share a node."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, cast

import numpy as np

from cobre_comm.backends.nodes.node_order import NodeOrder, node_order_of
from cobre_comm.config import MpiConfig
from cobre_comm.errors import InitializationFailed
from cobre_comm.system.cores import core_numbers, quota_cores, spin_us

if TYPE_CHECKING:
    from mpi4py import MPI


def split_by_node(world: MPI.Intracomm, config: MpiConfig) -> tuple[MPI.Intracomm, MpiConfig]:
    """Return the communicator of the ranks that share memory with this rank, in rank order.

    The returned configuration says how long a wait of these ranks spins.
    """
    from mpi4py import MPI

    node = cast(MPI.Intracomm, world.Split_type(MPI.COMM_TYPE_SHARED, key=world.rank))
    # An mpiexec may bind each rank to a core of its own, or all ranks of the node to one core. So
    # the cores of all these ranks count together.
    together = set[int]().union(*node.allgather(core_numbers()))
    cores = min(len(together), quota_cores())
    spin = spin_us(node.size, config.spin_us, cores=cores)
    config = dataclasses.replace(config, spin_us=spin)
    pretend = config.pretend_nodes
    if not pretend:
        return node, config
    pretended = cast(MPI.Intracomm, node.Split(pretend[world.rank % len(pretend)], key=world.rank))
    node.Free()
    return pretended, config


def order_over(world: MPI.Intracomm, node: MPI.Intracomm) -> NodeOrder:
    """Return the node order of ``world``, on every rank; collective.

    ``InitializationFailed`` is raised if the ranks report leaders that cannot be the first ranks of
    nodes.
    """
    leader = np.array([world.rank], dtype=np.int64)
    node.Bcast(leader, root=0)
    leaders = np.empty(world.size, dtype=np.int64)
    world.Allgather(leader, leaders)
    ranks = np.arange(world.size)
    if not ((leaders >= 0) & (leaders <= ranks)).all() or (leaders[leaders] != leaders).any():
        raise InitializationFailed(
            "mpi", f"the first ranks of the nodes are told as {leaders.tolist()}, which cannot be"
        )
    return node_order_of(leaders, world.rank)
