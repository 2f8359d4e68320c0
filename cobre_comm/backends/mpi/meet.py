"""The rendezvous over MPI: find the nodes, then attach the ranks of each node to a segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cobre_comm.backends.agreement import first_problem, reason_of
from cobre_comm.backends.membership import Membership, NodeSegment
from cobre_comm.backends.mpi.group import MpiGroup, await_all
from cobre_comm.backends.mpi.memory import MpiTransport
from cobre_comm.backends.mpi.node_order import order_over, split_by_node
from cobre_comm.backends.mpi.owned import OwnedObjects, register
from cobre_comm.backends.nodes.configs import with_staging_buffer, within_node
from cobre_comm.backends.nodes.lanes import with_lanes
from cobre_comm.backends.nodes.memory import BODIES, half_bytes_of
from cobre_comm.backends.nodes.node_order import NodeOrder, name_nodes
from cobre_comm.backends.shm.attachment import Attachment, attach_group
from cobre_comm.backends.shm.backend import BODIES as NODE_BODIES
from cobre_comm.config import MpiConfig
from cobre_comm.errors import InitializationFailed
from cobre_comm.sources import Sources, own_sources

if TYPE_CHECKING:
    from mpi4py import MPI


def meet(parent: MPI.Intracomm, config: MpiConfig) -> Membership:
    """Find out which ranks are on which node, and attach to the ranks of this node; collective."""
    await_all(parent, config.timeout_s)
    world = parent.Dup()
    _refuse_other_sources(MpiGroup(world))
    node, config = split_by_node(world, config)
    order = with_lanes(MpiGroup(world), order_over(world, node), config.leaders)
    is_alone = order.nodes == 1
    every_node = () if is_alone else name_nodes(MpiGroup(world), order)
    objects = OwnedObjects(world, node)
    register(objects, parent)
    transport = MpiTransport(config, order, objects)
    try:
        attachment = _attach(transport, order)
    except BaseException:
        objects.is_closed = True
        raise
    return Membership(
        world.rank,
        world.size,
        order.here.tolist(),
        order.nodes,
        NODE_BODIES if is_alone else BODIES,
        shares=not order.is_flat,
        attachment=attachment,
        transport=transport,
        every_node=every_node,
    )


def _refuse_other_sources(world: MpiGroup) -> None:
    """Raise on all ranks if some rank's sources differ from those of rank 0; collective."""
    ours = own_sources()
    hashes = world.gather_rows(np.array([ours.hash]))[:, 0].tolist()
    if len(set(hashes)) == 1:
        return
    places = world.gather_rows(np.frombuffer(ours.place, dtype=np.uint8))
    first, *others = map(Sources, hashes, map(bytes, places))
    said = (first.against(0, theirs, rank) for rank, theirs in enumerate(others, 1))
    raise InitializationFailed("mpi", next(filter(None, said)))


def _attach(transport: MpiTransport, order: NodeOrder) -> NodeSegment:
    """Attach the ranks of each node; if there are several nodes, make a communicator of leaders."""
    objects, config = transport.owned, transport.config
    world, node = objects.world, objects.node
    if order.nodes == 1:
        return share_node(world, node, config)
    objects.split_off_leaders(order.lane if order.has_lane else None, order.node)
    attachment = share_node(world, node, with_staging_buffer(config, order))
    own_half_bytes = half_bytes_of(order, attachment.buffer_bytes)
    transport.half_bytes = MpiGroup(world).agree(own_half_bytes)
    return attachment


def share_node(world: MPI.Intracomm, node: MPI.Intracomm, config: MpiConfig) -> Attachment:
    """Attach the ranks of a node to one segment; on failure all ranks of all nodes raise."""
    within = within_node(config, node.rank, node.size)
    attachment, cause, problem = None, None, ""
    try:
        attachment = attach_group(within, MpiGroup(node))
    except Exception as error:  # the other ranks wait for this rank's answer
        cause, problem = error, reason_of(error)
    found = first_problem(MpiGroup(world), problem)
    if found or attachment is None:
        raise InitializationFailed("mpi", found) from cause
    return attachment
