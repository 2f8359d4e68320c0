"""The rendezvous over MPI: find the nodes, then attach the ranks of each node to a segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from cobre_kernels.collective import comm as states
from cobre_kernels.machine.record import View
from numpy.typing import NDArray

from cobre_comm.backends.membership import Membership, NodeSegment
from cobre_comm.backends.mpi.memory import MpiMemory
from cobre_comm.backends.mpi.node_order import order_over, split_by_node
from cobre_comm.backends.mpi.owned import OwnedObjects, register
from cobre_comm.backends.mpi.rendezvous import MpiGroup, await_all, share_node
from cobre_comm.backends.nodes.configs import with_staging_buffer
from cobre_comm.backends.nodes.lanes import with_lanes
from cobre_comm.backends.nodes.memory import BODIES, half_bytes_of
from cobre_comm.backends.nodes.node_order import NodeOrder, name_nodes
from cobre_comm.backends.shm.backend import BODIES as NODE_BODIES
from cobre_comm.config import MpiConfig

if TYPE_CHECKING:
    from mpi4py import MPI


class MpiTransport:
    """MPI as a transport: the owned MPI objects of a communicator. On one node they move no data.

    ``config`` has the choices that the ranks have made.
    """

    def __init__(self, config: MpiConfig, order: NodeOrder, objects: OwnedObjects) -> None:
        self.config, self.owned = config, objects
        self.half_bytes = 0  # of half a staging buffer, on every node
        self.pids: dict[int, int] = {}  # empty, because MPI tells no process ids
        self._order = order

    def begin(self, comm: View, words: NDArray[np.int64], attachment: NodeSegment) -> MpiMemory:
        """Make the records of a communicator; see :class:`~..membership.Transport`."""
        memory = MpiMemory(comm, words, self.owned, self._order)
        attachment.describe(comm)
        memory.use_staging_buffer(self.half_bytes)
        self.owned.receive_goodbyes = memory.receive_goodbyes
        self.owned.keep(attachment, memory)
        return memory

    def let_go(self, guard: int) -> None:
        """Have the communicators freed at the next collective moment."""
        # Of a broken one over several nodes, a request may still be under way.
        is_quiet = guard == states.IDLE or (guard == states.BROKEN and self._order.nodes == 1)
        self.owned.is_closed = self.owned.is_closed or is_quiet


def meet(parent: MPI.Intracomm, config: MpiConfig) -> Membership:
    """Find out which rank is on which node, and attach to the ranks of this one; collective."""
    await_all(parent, config.timeout_s)
    world = parent.Dup()
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


def _attach(transport: MpiTransport, order: NodeOrder) -> NodeSegment:
    """Attach the ranks of each node; leaders of several nodes get communicators of their own."""
    objects, config = transport.owned, transport.config
    world, node = objects.world, objects.node
    if order.nodes == 1:
        return share_node(world, node, config)
    objects.split_off_leaders(order.lane if order.has_lane else None, order.node)
    attachment = share_node(world, node, with_staging_buffer(config, order))
    own_half_bytes = half_bytes_of(order, attachment.buffer_bytes)
    transport.half_bytes = MpiGroup(world).agree(own_half_bytes)
    return attachment
