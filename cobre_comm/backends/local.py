"""One process: identity copies, no-ops and heap regions. Always available."""

from __future__ import annotations

import itertools

import numpy as np
from cobre_kernels import layout
from cobre_kernels.local.allgatherv import allgatherv_kernel
from cobre_kernels.local.allreduce import allreduce_kernel
from cobre_kernels.local.barrier import synchronise_kernel
from cobre_kernels.local.broadcast import broadcast_kernel
from numpy.typing import DTypeLike

from cobre_comm import jit
from cobre_comm.backends.kernel_backend import KernelBackend, KernelSet
from cobre_comm.communicator import Array
from cobre_comm.errors import AllocationFailed
from cobre_comm.shared_region import HeapRegion, region_layout

KERNELS = KernelSet(synchronise_kernel, broadcast_kernel, allreduce_kernel, allgatherv_kernel)


class LocalBackend(KernelBackend):
    """The communicator of one rank.

    In ``@njit`` code ``barrier`` and ``broadcast`` compile to nothing, ``allreduce`` and
    ``allgatherv`` to a copy.
    """

    __slots__ = ("_regions",)

    def __init__(self) -> None:
        super().__init__(KERNELS, layout.LOCAL, 0, 1, is_leader=True)
        self._regions = itertools.count()

    @property
    def backend(self) -> str:
        """``"local"``."""
        return "local"

    def create_shared_region(self, count: int, dtype: DTypeLike = np.float64) -> HeapRegion:
        """See :meth:`SharedMemoryProvider.create_shared_region`; the region is on the heap."""
        elements, element_type = region_layout(count, dtype)
        self.check_usable()
        return HeapRegion(self, heap_zeros(elements, element_type), next(self._regions))

    def split_local(self) -> LocalBackend:
        """Return another communicator of this rank alone."""
        self.check_usable()
        return LocalBackend()


def heap_zeros(count: int, dtype: np.dtype[np.generic]) -> Array:
    """Return an array of zeros, or raise ``AllocationFailed``."""
    try:
        return np.zeros(count, dtype=dtype)
    except (MemoryError, ValueError) as error:
        raise AllocationFailed(count * dtype.itemsize, str(error)) from error


jit.register_backend(LocalBackend, jit.LocalCommType())
jit.register_region(HeapRegion, synchronises=False)
