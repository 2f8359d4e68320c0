"""TcpBackend: life cycle of a communicator over sockets, and shared memory within a node."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from cobre_kernels.collective.calls import SPLIT
from cobre_kernels.collective.comm import LEADERS, RANKS

from cobre_comm.backends.agreement import Group
from cobre_comm.backends.comm_group import CommGroup
from cobre_comm.backends.kernel_backend import KernelBackend
from cobre_comm.backends.local import backend as local
from cobre_comm.backends.shm.attachment import attach_nowhere
from cobre_comm.backends.shrink import Council
from cobre_comm.backends.split import Part, make_in_step
from cobre_comm.backends.tcp.council import TcpCouncil
from cobre_comm.backends.tcp.meet import expected_bodies, meet
from cobre_comm.backends.tcp.memory import SocketTransport
from cobre_comm.backends.tcp.spec import TCP
from cobre_comm.backends.tcp.split import (
    NEW_JOB,
    Meeting,
    arranged,
    config_of_part,
    opened_listener,
)
from cobre_comm.config import TcpConfig
from cobre_comm.contract.numba_types import LateType
from cobre_comm.errors import InitializationFailed


class TcpBackend(KernelBackend):
    """The communicator of R processes over sockets, and over shared memory within a node.

    Ranks that can open each other's shared memory form a node. If all ranks form one node, they
    work by the kernels of :class:`ShmBackend`, and no socket stays open. Otherwise the leader of
    each node speaks for its node over sockets. Leaders send small payloads to every other leader at
    once, or by hops where hops take less time. Large payloads travel around a ring of leaders; in
    an allreduce they travel along a chain of leaders, or in stripes, one to each leader. If every
    rank is a node of its own, each rank has its own copy of a region on its heap.

    Parameters
    ----------
    config : TcpConfig
        Where the ranks meet. The constructor returns when all ranks have arrived.

    Raises
    ------
    InitializationFailed
        If a rank does not arrive or cannot be reached, or the ranks of a node cannot share memory.

    Examples
    --------
    >>> from cobre_comm import TcpBackend, TcpConfig
    >>> with TcpBackend(TcpConfig(rank=0, size=1)) as comm:
    ...     comm.sum(3)
    3
    """

    __slots__ = ("_peers_are_proven",)
    _numba_type_ = LateType("communicator")
    _config: TcpConfig

    def __init__(self, config: TcpConfig) -> None:
        self._begin(config)

    def _begin(
        self,
        config: TcpConfig,
        group: Group | None = None,
        leader: int = 0,
        meeting: Meeting = NEW_JOB,
    ) -> None:
        """Meet the other ranks at an address, in a group that can talk, or as a split arranges.

        ``group`` contains all ranks of this communicator, which are one node and need no
        rendezvous. ``leader`` is the rank of the group that is rank 0 of this communicator.
        ``meeting`` has the listener of the first rank of a color, and what ranks do while they
        meet. ``AllocationFailed`` is raised if a rank of the group cannot attach.
        """
        super().__init__(TCP, config, expected_bodies(config), config.rank, config.size)
        # Whether every peer has proved that it knows the job's secret. Without this proof no peer
        # may send pickles.
        self._peers_are_proven = bool(config.token) or config.size == 1
        self._join(meet(config, group, leader, meeting))

    def split_local(self) -> TcpBackend | local.LocalBackend:
        """Return a communicator of the ranks of this node, in their order."""
        self._agree_on(SPLIT, 0)
        if not self._membership.shares:
            return local.LocalBackend()
        with self._together("split_local"):
            config = dataclasses.replace(
                self._config, rank=self._comm.node.rank, size=self._comm.node.size
            )
            return self._as_proven(TcpBackend._of(config, CommGroup(self), self._membership.leader))

    def _as_proven(self, made: TcpBackend) -> TcpBackend:
        """Note for a new communicator whether this one's peers are proven; return the new one."""
        made._peers_are_proven = self._peers_are_proven
        return made

    def _convene(self) -> Council:
        transport = self._membership.transport
        if isinstance(transport, SocketTransport) and transport.callers is not None:
            return TcpCouncil(self._config, transport.callers)
        return super()._convene()

    def _make_part(self, part: Part, group: Group) -> tuple[TcpBackend | None, Exception | None]:
        pace = self._comm.paces[RANKS if self._nodes is None else LEADERS]
        buffer_bytes = self._comm.node.buffer_stride or None
        config = config_of_part(self._config, part, buffer_bytes, pace.spin_ns / 1000)
        met = self._membership
        if met.attachment is not None and met.nodes == 1:
            if not part.has_color:
                attach_nowhere(group, part.leader)
                return None, None
            return self._as_proven(TcpBackend._of(config, group, part.leader)), None
        where = met.transport.where if isinstance(met.transport, SocketTransport) else {}
        with opened_listener(part, where) as (listener, problem):
            config = arranged(group, part, config, where, listener)

            def make(look: Callable[[], None]) -> TcpBackend | None:
                if problem:
                    raise InitializationFailed("tcp", problem)
                if not part.has_color:
                    return None
                made = TcpBackend._of(config, None, 0, Meeting(listener, look))
                return self._as_proven(made)

            return make_in_step(group, "tcp", make)
