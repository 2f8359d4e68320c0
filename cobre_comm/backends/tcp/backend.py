"""TcpBackend: life cycle of a communicator over sockets, and shared memory within a node."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from cobre_kernels.collective.calls import SPLIT
from cobre_kernels.machine import access, libc
from cobre_kernels.machine.kernel import Kernel

from cobre_comm.backends.local import backend as local
from cobre_comm.backends.nodes.backend import NodesBackend, with_staging_buffer, within_node
from cobre_comm.backends.nodes.memory import BODIES, NodesMemory
from cobre_comm.backends.nodes.node_order import NodeOrder, node_order_of
from cobre_comm.backends.shm.attachment import attach_group, attach_nowhere
from cobre_comm.backends.shm.backend import BODIES as NODE_BODIES
from cobre_comm.backends.shm.backend import kernels as node_kernels
from cobre_comm.backends.split import Part, make_in_step
from cobre_comm.backends.tcp.links import Links
from cobre_comm.backends.tcp.memory import VERBS, link_record
from cobre_comm.backends.tcp.nodes import find_nodes
from cobre_comm.backends.tcp.rendezvous import Participant, meet
from cobre_comm.backends.tcp.spec import TCP
from cobre_comm.backends.tcp.split import (
    NEW_JOB,
    Meeting,
    arranged,
    config_of_part,
    opened_listener,
)
from cobre_comm.common.agreement import Group
from cobre_comm.common.cores import usable_cores
from cobre_comm.config import TcpConfig
from cobre_comm.errors import AllocationFailed, InitializationFailed
from cobre_comm.jit.register import register_backend
from cobre_comm.loading import Bodies

SPIN_US = 50.0  # when every rank of this machine has a core
YIELD_US = 50.0  # after the spin, before the first poll
COMPILE_S = 300.0  # what no rank expected to run, on a slow machine


class TcpBackend(NodesBackend):
    """R processes on one machine or many, over sockets, and shared memory within a node.

    Ranks that can open each other's shared memory form a node. If all ranks do, they work by the
    kernels of :class:`ShmBackend`, and no socket stays open. Otherwise the leader of each node
    speaks for it over sockets: small payloads go to every other leader at once. Large ones go
    around a ring of leaders; those of an allreduce go along a chain of them, or a stripe to each.
    Where every rank is alone, a region is a heap copy on each.

    Parameters
    ----------
    config : TcpConfig
        Where the ranks meet. The constructor returns when all of them have come.
    group : Group, optional
        Ranks that can talk already, these among them, which are one node: then they meet nowhere.
    leader : int
        The first of these in the group.
    meeting : Meeting
        How the ranks of one color meet, where a communicator is split.

    Raises
    ------
    InitializationFailed
        If a rank does not come or cannot be reached, or if the ranks of a node find no memory.
    AllocationFailed
        If there is a group, and one of its ranks cannot attach.

    Examples
    --------
    >>> from cobre_comm import TcpBackend, TcpConfig
    >>> with TcpBackend(TcpConfig(rank=0, size=1)) as comm:
    ...     comm.sum(3)
    3
    """

    __slots__ = ("_links", "_peers_are_proven")
    _config: TcpConfig

    def __init__(
        self,
        config: TcpConfig,
        group: Group | None = None,
        leader: int = 0,
        meeting: Meeting = NEW_JOB,
    ) -> None:
        alone = node_order_of(range(config.size), config.rank)
        super().__init__(TCP, _expected_bodies(config), alone, config.rank)
        self._config = config
        # Whether every peer has shown that it knows the job's secret: then it may send pickles.
        self._peers_are_proven = bool(config.token) or config.size == 1
        self._links: Links | None = None
        self._comm.timeout_ns = int(config.timeout_s * libc.NS_PER_S)
        if group is not None:
            self._share(group, leader)
        elif config.size > 1:
            self._meet(meeting)

    def _meet(self, meeting: Meeting) -> None:
        """Find the other ranks, and those of them that share memory."""
        with meet(self._config, meeting.listener, meeting.meanwhile) as participant:
            order = find_nodes(participant, self._config)
            if order.nodes == 1:
                self._use_shared_memory(participant)
                participant.exchange(b"", last=True)
                participant.links.close()
            else:
                self._use_links(participant, order)

    def _use_shared_memory(self, group: Group) -> None:
        try:
            self._share(group)
        except AllocationFailed as error:
            raise InitializationFailed(
                "tcp",
                f"the ranks of this machine cannot share memory: {error.message}; give them more, "
                "or set COBRE_TCP_SHARE=0, so that each has memory of its own",
            ) from None

    def _share(self, group: Group, leader: int = 0) -> None:
        """Make all ranks one node."""
        NODE_BODIES.give_to(self._comm)
        self._place(node_order_of([0] * self._size, self._rank))
        here = within_node(self._config, self._rank, self._size)
        self._use_segment(attach_group(self._comm, here, group, leader))

    def _use_links(self, participant: Participant, order: NodeOrder) -> None:
        """Let the leaders of several nodes link."""
        config, comm = self._config, self._comm
        if _expected_bodies(config) is not BODIES:
            participant.extend(COMPILE_S)
        BODIES.give_to(comm)
        self._place(order)
        memory = NodesMemory(comm, self._words, order, VERBS)
        within = with_staging_buffer(config, order)
        here = within_node(within, memory.node.rank, memory.node.size)
        segment = attach_group(memory.node, here, participant, order.leader)
        self._use_nodes(memory, segment, participant.agree)
        participant.start(order.leaders.tolist())
        links = participant.links
        self._journals.find(links.pids)
        try:
            comm.links = link_record(memory, links, order)
        except MemoryError as error:
            raise InitializationFailed("tcp", f"no memory for eager_bytes: {error}") from error
        if order.is_flat:
            comm.spin_ns = choose_spin_us(config, links.ranks_here) * 1000
            comm.yield_ns = YIELD_US * 1000
        memory.nodes.eager_bytes = links.eager_bytes
        self._links, self._memory = links, memory  # now goodbyes have a way

    def split_local(self) -> TcpBackend | local.LocalBackend:
        """Return a communicator of the ranks of this node, in their order."""
        self._agree_on(SPLIT, 0)
        if self._node_order.is_flat:
            return local.LocalBackend()
        with self._together("split_local"):
            config = dataclasses.replace(
                self._config, rank=self._attached.rank, size=self._attached.size
            )
            return self._as_proven(TcpBackend(config, self._group, self._node_order.leader))

    def _as_proven(self, made: TcpBackend) -> TcpBackend:
        """Return a communicator of ranks of this one; its token proves nothing more."""
        made._peers_are_proven = self._peers_are_proven
        return made

    def _make_part(self, part: Part) -> tuple[TcpBackend | None, Exception | None]:
        config = config_of_part(
            self._config, part, self._attached.buffer_stride or None, self._comm.spin_ns / 1000
        )
        if self._segment is not None and self._memory is None:
            if not part.has_color:
                attach_nowhere(self._group, part.leader)
                return None, None
            return self._as_proven(TcpBackend(config, self._group, part.leader)), None
        where = {} if self._links is None else self._links.where
        with opened_listener(part, where) as (listener, problem):
            config = arranged(self._group, part, config, where, listener)

            def make(look: Callable[[], None]) -> TcpBackend | None:
                if problem:
                    raise InitializationFailed("tcp", problem)
                if not part.has_color:
                    return None
                made = TcpBackend(config, meeting=Meeting(listener, look))
                return self._as_proven(made)

            return make_in_step(self._group, "tcp", make)

    def _mark_forked(self) -> None:
        """In a forked child: close its copies of the sockets, which would keep them open."""
        super()._mark_forked()
        self._close_links()

    def _close_links(self) -> None:
        links, self._links = self._links, None
        if links is not None:
            links.close()

    def close(self) -> None:
        """Leave the group; idempotent. Ranks that wait for this one learn that it has left."""
        super().close()
        self._close_links()


def _expected_bodies(config: TcpConfig) -> Bodies:
    """Return what runs if the ranks are placed as the configuration lets expect.

    It is compiled before the ranks meet, so that no rank waits for it there.
    """
    if config.size == 1:
        return local.BODIES
    return NODE_BODIES if config.share and len(set(config.pretend_nodes)) < 2 else BODIES


def choose_spin_us(config: TcpConfig, ranks_here: int) -> float:
    """Return how long a wait spins, before it yields and then blocks."""
    if config.spin_us is not None:
        return config.spin_us
    return SPIN_US if ranks_here <= usable_cores() else 0.0


def kernels() -> list[Kernel]:
    """Return what is compiled before ranks start."""
    return [*node_kernels(), *BODIES.all(), *VERBS.all(), *access.KERNELS, *local.BODIES.all()]


register_backend(TcpBackend, is_local=False)
