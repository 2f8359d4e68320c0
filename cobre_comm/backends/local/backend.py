"""One process: identity copies, no-ops and heap regions. Always available."""

from __future__ import annotations

import itertools
from typing import overload

import numpy as np
from cobre_kernels import local
from cobre_kernels.machine.kernel import Kernel
from cobre_kernels.machine.record import peek_now
from numpy.typing import DTypeLike

from cobre_comm.backends.kernel_backend import COMMON_KERNELS, KernelBackend
from cobre_comm.backends.local.spec import LOCAL
from cobre_comm.backends.split import check_color
from cobre_comm.common.agreement import Group, agree_on_memory, attempt
from cobre_comm.common.call_forms import tells_forms
from cobre_comm.communicator import Array
from cobre_comm.errors import AllocationFailed
from cobre_comm.jit.register import register_backend, register_region
from cobre_comm.loading import Bodies
from cobre_comm.shared_region import HeapRegion, region_layout

BODIES = Bodies("cobre_kernels.local", local.abandon_body)


@tells_forms("comm")
class LocalBackend(KernelBackend):
    """The communicator of one rank.

    In ``@njit`` code ``barrier`` and ``broadcast`` compile to a look whether the communicator is
    closed, and ``allreduce`` to a copy; ``allgatherv``, ``gatherv`` and ``exact_sum`` run their
    entries.

    Examples
    --------
    >>> from cobre_comm import LocalBackend
    >>> with LocalBackend() as comm:
    ...     comm.sum(3)
    3
    """

    __slots__ = ("_regions",)

    def __init__(self) -> None:
        super().__init__(LOCAL, BODIES, 0, 1, is_leader=True)
        self._regions = itertools.count()

    def create_shared_region(self, count: int, dtype: DTypeLike = np.float64) -> HeapRegion:
        """Return an array of zeros on this process's heap."""
        elements, element_type = region_layout(count, dtype)
        self._check_usable()
        return HeapRegion(self, heap_zeros(elements, element_type), next(self._regions))

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

    def split_local(self) -> LocalBackend:
        """Return another communicator of this rank alone."""
        self._check_usable()
        return LocalBackend()


def heap_zeros(count: int, dtype: np.dtype[np.generic]) -> Array:
    """Return an array of zeros, or raise ``AllocationFailed``."""
    try:
        return np.zeros(count, dtype=dtype)
    except (MemoryError, ValueError) as error:
        raise AllocationFailed(count * dtype.itemsize, str(error)) from error


def heap_zeros_of_each(group: Group, count: int, dtype: np.dtype[np.generic]) -> Array:
    """Return zeros of this rank's own; if one has no memory, all raise ``AllocationFailed``."""
    memory, problem = attempt(lambda: heap_zeros(count, dtype))
    agree_on_memory(group, count * dtype.itemsize, problem)
    assert memory is not None
    return memory


def kernels() -> list[Kernel]:
    """Return what is compiled before ranks start."""
    return [*COMMON_KERNELS, *BODIES.all()]


register_backend(LocalBackend, is_local=True)
register_region(HeapRegion, synchronises=False)
