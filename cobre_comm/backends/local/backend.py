"""One process: identity copies, no-ops and heap regions. Always available."""

from __future__ import annotations

from typing import overload

import numpy as np
from cobre_kernels import local
from cobre_kernels.machine.record import peek_now
from numpy.typing import DTypeLike

from cobre_comm import old_names
from cobre_comm.backends.agreement import Group
from cobre_comm.backends.bodies import Bodies
from cobre_comm.backends.kernel_backend import KernelBackend
from cobre_comm.backends.local.spec import LOCAL
from cobre_comm.backends.membership import alone
from cobre_comm.backends.split import Part, check_color
from cobre_comm.contract.numba_types import LateType
from cobre_comm.contract.shared_region import OWNER, HeapRegion, Shape, heap_zeros, region_layout
from cobre_comm.reports.tracebacks import methods_tell_callers

BODIES = Bodies("cobre_kernels.local", local.abandon_body)


@methods_tell_callers()
class LocalBackend(KernelBackend):
    """The communicator of one rank.

    In ``@njit`` code ``barrier`` and ``broadcast`` only check that the communicator is open.
    ``allreduce`` compiles to a copy, except for LAND and LOR, which run the entry. ``allgatherv``,
    ``gatherv`` and ``exact_sum`` always run their entries.

    Examples
    --------
    >>> from cobre_comm import LocalBackend
    >>> with LocalBackend() as comm:
    ...     comm.sum(3)
    3
    """

    __slots__ = ()
    _numba_type_ = LateType("local")

    def __init__(self) -> None:
        super().__init__(LOCAL, None, BODIES, 0, 1)
        self._join(alone(0, 1, BODIES))

    @old_names.also_by_position("placement")
    def create_shared_region(
        self, shape: Shape, dtype: DTypeLike = np.float64, *, placement: str = OWNER
    ) -> HeapRegion:
        """Return an array of zeros on this process's heap."""
        lengths, element_type = region_layout(shape, dtype, placement)
        self._check_usable()
        return HeapRegion(self, heap_zeros(lengths, element_type), next(self._regions))

    def stop_requested(self) -> bool:
        """Tell whether this process has been asked to stop."""
        self._check_usable()
        return bool(peek_now(self._comm.stop.requested))

    @overload
    def split(self, color: int, key: int = 0) -> LocalBackend: ...
    @overload
    def split(self, color: int | None, key: int = 0) -> LocalBackend | None: ...
    def split(self, color: int | None, key: int = 0) -> LocalBackend | None:
        """Return another communicator of this rank alone, or None for color None."""
        color, _ = check_color(color, key)
        self._check_usable()
        return None if color is None else LocalBackend()

    def _make_part(self, part: Part, group: Group) -> tuple[LocalBackend, None]:
        return LocalBackend(), None

    def split_local(self) -> LocalBackend:
        """Return another communicator of this rank alone."""
        self._check_usable()
        return LocalBackend()
