"""MpiBackend: life cycle of a communicator over MPI."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, NoReturn

from cobre_kernels.collective import comm as states
from cobre_kernels.collective.calls import SPLIT
from cobre_kernels.machine.record import poke_now

from cobre_comm.backends.agreement import Group
from cobre_comm.backends.kernel_backend import KernelBackend
from cobre_comm.backends.mpi import abort, library, owned
from cobre_comm.backends.mpi.meet import meet
from cobre_comm.backends.mpi.memory import MpiTransport
from cobre_comm.backends.mpi.spec import MPI as SPEC
from cobre_comm.backends.mpi.split import beside, config_of_part, split_off
from cobre_comm.backends.shrink import SHRINK
from cobre_comm.backends.split import Part, make_in_step
from cobre_comm.config import MpiConfig
from cobre_comm.contract.numba_types import LateType
from cobre_comm.errors import CollectiveFailed, InvalidCommunicator
from cobre_comm.reports import aborting, raised

if TYPE_CHECKING:
    from mpi4py import MPI


class MpiBackend(KernelBackend):
    """The ranks of an MPI communicator, on any number of nodes.

    Ranks that share a node work through shared memory, with the kernels of :class:`ShmBackend`. If
    there are several nodes, the leader of each node speaks for it, and MPI moves the data between
    the leaders. Ranks always fold by our own kernels (docs/design/nodes.md).

    mpi4py initialises MPI for any thread (MPI_THREAD_MULTIPLE), unless ``mpi4py.rc.thread_level``
    says less. With ``"funneled"``, create and use communicators in the thread that has initialised
    MPI. With ``"serialized"``, use only one communicator at a time, in one thread at a time.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm, optional
        The ranks of ``comm`` take part, and all of them call this; ``MPI.COMM_WORLD`` by default.
        ``comm`` is duplicated, so that our messages never match the caller's messages.
    config : MpiConfig, optional
        Default: the environment.

    Raises
    ------
    BackendNotAvailable
        If mpi4py or an MPI is missing.
    TypeError
        If ``comm`` is no intra-communicator of mpi4py.
    InitializationFailed
        If MPI is not initialized with at least MPI_THREAD_FUNNELED, or is initialized for another
        thread alone; if MPI has a world of one rank where a launcher announces more; if a rank does
        not arrive; or if the ranks of a node cannot share memory.

    Examples
    --------
    In a program that MPI has started:

    >>> from cobre_comm import MpiBackend
    >>> with MpiBackend() as comm:
    ...     comm.sum(3)
    3
    """

    __slots__ = ("_owned",)
    _numba_type_ = LateType("communicator")
    _config: MpiConfig

    def __init__(self, comm: MPI.Intracomm | None = None, config: MpiConfig | None = None) -> None:
        config = MpiConfig.from_env() if config is None else config
        parent = library.usable_parent(comm)
        if config.aborts and parent.Get_size() > 1:
            abort.install()
        with library.errors_named():
            met = meet(parent, config)
            assert isinstance(met.transport, MpiTransport)
            super().__init__(SPEC, met.transport.config, met.bodies, met.rank, met.size)
            self._owned = met.transport.owned
            owned.owners.add(self)
            self._join(met)

    def split_local(self) -> MpiBackend:
        """Return a communicator of the ranks of this node, in their order."""
        self._agree_on(SPLIT, 0)
        with self._together("split_local"):
            config = dataclasses.replace(self._config, pretend_nodes=())
            return MpiBackend(self._owned.node, config)

    def _make_part(self, part: Part, group: Group) -> tuple[MpiBackend | None, Exception | None]:
        config = config_of_part(self._config, part, self._comm.node.buffer_stride)
        world, split_off_comms = self._owned.world, []

        def make() -> MpiBackend | None:
            comm = split_off(world, part, config.timeout_s)
            split_off_comms.append(comm)
            return None if comm is None else MpiBackend(comm, config)

        made, error = make_in_step(group, "mpi", lambda look: beside(make, look))
        for comm in split_off_comms:
            if error is None:
                owned.children_of(world).append(owned.OwnedPart(comm))
            else:
                owned.OwnedPart(comm).leave_to_finalize()
        return made, error

    def _begin_to_shrink(self) -> None:
        self._check_open()
        raise CollectiveFailed(
            SHRINK,
            message="MPI ends the whole job when a rank is lost; start it by `cobre-comm run "
            "--max-restarts N`, or on shm or tcp, where survivors go on",
        )

    @property
    def _library(self) -> str:
        return library.version()

    def _end_job(self, aborted: aborting.Aborted) -> NoReturn:
        """Tell the other ranks, which then wait for MPI to end them."""
        try:
            raised.end_all(aborted)
            abort.abort_world(aborted.code)
        finally:
            super()._end_job(aborted)

    def _become_finalized(self) -> None:
        """Become unusable, because MPI is about to be finalized."""
        with contextlib.suppress(InvalidCommunicator):
            self.close()
        if self._guard in (states.CLOSED, states.BROKEN):
            poke_now(self._comm.guard, states.FINALIZED)
