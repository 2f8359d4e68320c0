"""MpiBackend: life cycle of a communicator over MPI."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING

from cobre_kernels.collective import comm as states
from cobre_kernels.collective import status
from cobre_kernels.collective.calls import SPLIT
from cobre_kernels.machine import access
from cobre_kernels.machine.kernel import Kernel

from cobre_comm.backends.kernel_backend import COMMON_KERNELS
from cobre_comm.backends.mpi import abort, library, owned
from cobre_comm.backends.mpi.memory import VERBS, MpiMemory
from cobre_comm.backends.mpi.node_order import order_over, split_by_node
from cobre_comm.backends.mpi.rendezvous import MpiGroup, await_all, compile_in_turn, share_node
from cobre_comm.backends.mpi.spec import MPI as SPEC
from cobre_comm.backends.mpi.split import beside, config_of_part, split_off
from cobre_comm.backends.nodes.backend import NodesBackend, with_staging_buffer
from cobre_comm.backends.nodes.memory import BODIES
from cobre_comm.backends.nodes.node_order import NodeOrder
from cobre_comm.backends.shm.attachment import SPIN_US
from cobre_comm.backends.shm.backend import BODIES as NODE_BODIES
from cobre_comm.backends.shm.backend import kernels as node_kernels
from cobre_comm.backends.split import Part, make_in_step
from cobre_comm.config import MpiConfig
from cobre_comm.errors import InvalidCommunicator
from cobre_comm.jit.register import register_backend

if TYPE_CHECKING:
    from mpi4py import MPI


class MpiBackend(NodesBackend):
    """The ranks of an MPI communicator, on any number of nodes.

    Ranks that share a node work through shared memory, with the kernels of :class:`ShmBackend`.
    With several nodes, the leader of each speaks for its node, and MPI moves the data between
    them. Ranks always fold by our own kernels (docs/design/nodes.md).

    mpi4py initialises MPI for any thread (MPI_THREAD_MULTIPLE), unless ``mpi4py.rc.thread_level``
    says less. With ``"funneled"``, create and use communicators in the thread that has
    initialised MPI. With ``"serialized"``, one thread at a time may use all communicators
    together.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm, optional
        The communicator whose ranks take part; ``MPI.COMM_WORLD`` by default. All its ranks call
        this. It is duplicated, so that our messages never match the caller's.
    config : MpiConfig, optional
        Default: the environment.

    Raises
    ------
    BackendNotAvailable
        If mpi4py or an MPI is missing.
    InitializationFailed
        If MPI is not initialized with at least MPI_THREAD_FUNNELED, or for another thread, if it
        has a world of one rank where a launcher announces more, if a rank does not come, or if
        the ranks of a node cannot share memory.

    Examples
    --------
    Of a program that MPI has started:

    >>> from cobre_comm import MpiBackend
    >>> with MpiBackend() as comm:
    ...     comm.sum(3)
    3
    """

    __slots__ = ("_node", "_owned")
    _config: MpiConfig

    def __init__(self, comm: MPI.Intracomm | None = None, config: MpiConfig | None = None) -> None:
        self._config = MpiConfig.from_env() if config is None else config
        parent = library.usable_parent(comm)
        if self._config.aborts and parent.Get_size() > 1:
            abort.install()
        with library.errors_named():
            self._connect(parent)

    def _connect(self, parent: MPI.Intracomm) -> None:
        """Find out which rank is on which node, and attach to the ranks of this one."""
        await_all(parent, self._config.timeout_s)
        world = parent.Dup()
        node, has_room = split_by_node(world, self._config.pretend_nodes)
        if self._config.spin_us is None:
            spin_us = SPIN_US if has_room else 0.0
            self._config = dataclasses.replace(self._config, spin_us=spin_us)
        node_order = order_over(world, node)
        is_alone = node_order.nodes == 1
        compile_in_turn(node, node_kernels() if is_alone else _kernels_of_several_nodes())
        bodies = NODE_BODIES if is_alone else BODIES
        super().__init__(SPEC, bodies, node_order, world.rank)
        self._node = node
        self._owned = owned.OwnedObjects(world, node)
        owned.register(self._owned, parent, self)
        if is_alone:
            self._use_segment(share_node(self._comm, world, node, self._config))
        else:
            self._reach_other_nodes(node_order)

    def _reach_other_nodes(self, node_order: NodeOrder) -> None:
        memory = MpiMemory(self._comm, self._words, self._owned, node_order)
        config = with_staging_buffer(self._config, node_order)
        segment = share_node(memory.node, self._owned.world, self._node, config)
        self._use_nodes(memory, segment, MpiGroup(self._owned.world).agree)
        self._owned.receive_goodbyes = memory.receive_goodbyes
        self._owned.keep(segment, memory)
        self._memory = memory

    def split_local(self) -> MpiBackend:
        """Return a communicator of the ranks of this node, in their order."""
        self._agree_on(SPLIT, 0)
        with self._together("split_local"):
            return MpiBackend(self._node, dataclasses.replace(self._config, pretend_nodes=()))

    def _make_part(self, part: Part) -> tuple[MpiBackend | None, Exception | None]:
        config = config_of_part(self._config, part, self._attached.buffer_stride)
        world, split_off_comms = self._owned.world, []

        def make() -> MpiBackend | None:
            comm = split_off(world, part, config.timeout_s)
            split_off_comms.append(comm)
            return None if comm is None else MpiBackend(comm, config)

        made, error = make_in_step(self._group, "mpi", lambda look: beside(make, look))
        for comm in split_off_comms:
            if error is None:
                owned.children_of(world).append(owned.OwnedPart(comm))
            else:
                owned.OwnedPart(comm).leave_to_finalize()
        return made, error

    def close(self) -> None:
        """Leave the group; idempotent. Ranks that wait for this one learn that it has left."""
        super().close()
        # Of a broken one over several nodes, a request may still be under way.
        if self._segment is None and (self._memory is None or self._comm.failure == status.OK):
            self._owned.is_closed = True

    def _become_finalized(self) -> None:
        """Become unusable, because MPI is about to be finalized."""
        with contextlib.suppress(InvalidCommunicator):
            self.close()
        if self._guard in (states.CLOSED, states.BROKEN):
            self._guard = states.FINALIZED


def _kernels_of_several_nodes() -> list[Kernel]:
    """Return what runs on several nodes, after making MPI's functions known to the compiler."""
    library.make_known()
    return [*COMMON_KERNELS, *BODIES.all(), *VERBS.all(), *access.KERNELS]


def kernels() -> list[Kernel]:
    """Return what is compiled before ranks start; needs no MPI."""
    library.make_known(pretend=True)
    return [*node_kernels(), *BODIES.all(), *VERBS.all()]


register_backend(MpiBackend, is_local=False)
