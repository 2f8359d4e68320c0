"""The rendezvous of a communicator over sockets: it finds ranks and nodes, and links leaders."""

from __future__ import annotations

import contextlib

import numpy as np

from cobre_comm.backends.agreement import Group
from cobre_comm.backends.bodies import Bodies
from cobre_comm.backends.local.backend import BODIES as LOCAL_BODIES
from cobre_comm.backends.membership import Membership, alone
from cobre_comm.backends.nodes.configs import with_staging_buffer, within_node
from cobre_comm.backends.nodes.lanes import with_lanes
from cobre_comm.backends.nodes.memory import BODIES, half_bytes_of
from cobre_comm.backends.nodes.node_order import NodeOrder, name_nodes
from cobre_comm.backends.nodes.sharing import find_nodes
from cobre_comm.backends.shm.attachment import attach_group
from cobre_comm.backends.shm.backend import BODIES as NODE_BODIES
from cobre_comm.backends.tcp.callers import Callers
from cobre_comm.backends.tcp.memory import SocketTransport
from cobre_comm.backends.tcp.rendezvous import Participant
from cobre_comm.backends.tcp.rendezvous import meet as rendezvous
from cobre_comm.backends.tcp.rendezvous.addresses import same_host
from cobre_comm.backends.tcp.split import NEW_JOB, Meeting
from cobre_comm.config import TcpConfig
from cobre_comm.errors import AllocationFailed, InitializationFailed


def meet(
    config: TcpConfig, group: Group | None = None, leader: int = 0, meeting: Meeting = NEW_JOB
) -> Membership:
    """Find the other ranks, and the nodes that they form; collective.

    Parameters are those of ``TcpBackend._begin``.
    """
    if group is not None:
        return as_one_node(config, group, leader)
    if config.size == 1:
        return alone(config.rank, config.size, LOCAL_BODIES)
    with rendezvous(config, meeting.listener, meeting.meanwhile) as participant:
        order = find_nodes(participant, config.share, config.pretend_nodes)
        if order.nodes > 1:
            return _as_several_nodes(config, participant, order)
        try:
            met = as_one_node(config, participant)
        except AllocationFailed as error:
            raise InitializationFailed(
                "tcp",
                f"the ranks of this machine cannot share memory: {error.message}; give them more, "
                "or set COBRE_TCP_SHARE=0, so that each has memory of its own",
            ) from None
        participant.exchange(b"", last=True)
        participant.links.close()
        return met


def expected_bodies(config: TcpConfig) -> Bodies:
    """Return the bodies that run if the nodes turn out as the configuration suggests."""
    if config.size == 1:
        return LOCAL_BODIES
    return NODE_BODIES if config.share and len(set(config.pretend_nodes)) < 2 else BODIES


def as_one_node(config: TcpConfig, group: Group, leader: int = 0) -> Membership:
    """Make all ranks share memory."""
    rank, size = config.rank, config.size
    attachment = attach_group(within_node(config, rank, size), group, leader)
    shares = size > 1
    return Membership(rank, size, range(size), 1, NODE_BODIES, shares, attachment)


def _as_several_nodes(config: TcpConfig, participant: Participant, order: NodeOrder) -> Membership:
    """Make the ranks of each node share memory, and link the leaders of the nodes."""
    order = with_lanes(participant, order, config.leaders)
    rank, here = config.rank, order.here.tolist()
    within = within_node(with_staging_buffer(config, order), here.index(rank), len(here))
    attachment = attach_group(within, participant, here[0])
    with contextlib.ExitStack() as until_linked:
        listener = participant.listen_again()
        until_linked.callback(listener.close)
        own = np.array([half_bytes_of(order, attachment.buffer_bytes), listener.getsockname()[1]])
        half_bytes, port = participant.gather_rows(own).T
        every_node = name_nodes(participant, order)
        participant.start([order.leaders(lane).tolist() for lane in range(order.lanes)])
        until_linked.pop_all()
    transport = SocketTransport(config, order, participant.links, int(half_bytes.min()))
    where = {rank: same_host(at, int(port[rank])) for rank, at in transport.where.items()}
    transport.callers = Callers(listener, where, participant.key)
    shares = not order.is_flat
    return Membership(
        rank, config.size, here, order.nodes, BODIES, shares, attachment, transport, every_node
    )
