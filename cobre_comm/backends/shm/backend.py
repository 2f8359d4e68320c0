"""ShmBackend: life cycle of a communicator over one shared segment."""

from __future__ import annotations

import dataclasses

from cobre_kernels.collective.calls import SPLIT
from cobre_kernels.collective.comm import RANKS
from cobre_kernels.shm.failing import abandon_body

from cobre_comm.backends.agreement import Group
from cobre_comm.backends.bodies import Bodies
from cobre_comm.backends.comm_group import CommGroup
from cobre_comm.backends.kernel_backend import KernelBackend
from cobre_comm.backends.membership import Membership
from cobre_comm.backends.shm.attachment import attach, attach_group, attach_nowhere
from cobre_comm.backends.shm.spec import SHM
from cobre_comm.backends.split import Part
from cobre_comm.config import ShmConfig
from cobre_comm.contract.numba_types import LateType

BODIES = Bodies("cobre_kernels.shm", abandon_body)


def meet(config: ShmConfig, group: Group | None = None, leader: int = 0) -> Membership:
    """Attach the ranks to one segment, by the segment's name or by a group; collective."""
    if group is None:
        attachment = attach(config)
    else:
        attachment = attach_group(config, group, leader)
    return Membership(
        config.rank, config.size, range(config.size), 1, BODIES, shares=True, attachment=attachment
    )


class ShmBackend(KernelBackend):
    """The communicator of R processes on one machine, over POSIX shared memory.

    Parameters
    ----------
    config : ShmConfig
        Where the ranks meet. The constructor returns when all of them have attached.

    Raises
    ------
    InitializationFailed
        If a rank does not attach, or the segment cannot be used.

    Examples
    --------
    >>> from cobre_comm import ShmBackend, ShmConfig
    >>> with ShmBackend(ShmConfig(name="/valley", rank=0, size=1)) as comm:
    ...     comm.sum(3)
    3
    """

    __slots__ = ()
    _numba_type_ = LateType("communicator")
    _config: ShmConfig

    def __init__(self, config: ShmConfig) -> None:
        self._begin(config)

    def _begin(self, config: ShmConfig, group: Group | None = None, leader: int = 0) -> None:
        """Meet the other ranks by the name of a segment, or in a group that can send rows.

        All ranks of the group call this at the same time, even if they attach to other segments.
        ``leader`` is the rank of the group that is rank 0 of this segment. ``AllocationFailed`` is
        raised if a rank of the group cannot attach.
        """
        super().__init__(SHM, config, BODIES, config.rank, config.size)
        self._join(meet(config, group, leader))

    def split_local(self) -> ShmBackend:
        """Return an independent communicator of the same ranks."""
        self._agree_on(SPLIT, 0)
        with self._together("split_local"):
            return ShmBackend._of(self._config, CommGroup(self))

    def _make_part(self, part: Part, group: Group) -> tuple[ShmBackend | None, None]:
        if not part.has_color:
            attach_nowhere(group, part.leader)
            return None, None
        # In a part, each rank has a buffer as large as in this communicator, and spins as long.
        config = dataclasses.replace(
            self._config,
            rank=part.rank,
            size=part.size,
            buffer_bytes=self._comm.node.buffer_stride,
            spin_us=self._comm.paces[RANKS].spin_ns / 1000,
        )
        return ShmBackend._of(config, group, part.leader), None
