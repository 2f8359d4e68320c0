"""Regions in MPI shared windows.

The memory comes from ``MPI_Win_allocate_shared``. Freeing a window is collective, while a region
may be closed by any rank at any time and its views may outlive it. So on Linux each rank maps the
window's memory a second time, and the window is freed at once, in the collective call that made it.
What stays is an ordinary mapping of this process, given back when the last view goes: no order of
garbage collection, and no moment of ``MPI_Finalize``, can be wrong. On other systems the window is
one of the owned MPI objects of its communicator, and freed with them.

Sources: MPI 4.1, 12.2.3 "Window That Allocates Shared Memory"; mremap(2) on an old size of zero;
madvise(2) on MADV_POPULATE_WRITE, which reports short memory instead of a SIGBUS later.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from cobre_kernels.shm import control
from numpy.typing import NDArray

from cobre_comm.agreement import agree_on_memory, attempt
from cobre_comm.backends.shm import numa
from cobre_comm.backends.shm.mapping import FAILED, Mapping, libc
from cobre_comm.backends.shm.segment import SHM_FOLDER, check_space
from cobre_comm.shared_region import MappedRegion, RegionOwner

if TYPE_CHECKING:
    from cobre_comm.backends.mpi.owned import OwnedObjects

PAGE_BYTES: int = control.PAGE_BYTES
MREMAP_MAYMOVE = 1
MADV_POPULATE_WRITE = 23  # since Linux 5.14
POPULATE_PIECE_BYTES = 256 * 2**20  # a signal is heard between pieces


class MpiRegion(MappedRegion):
    """A region in the memory of an MPI shared window."""


def map_region(
    comm: RegionOwner, owned: OwnedObjects, count: int, dtype: np.dtype[Any], *, interleave: bool
) -> NDArray[Any]:
    """Allocate a region on every node; on failure all ranks raise ``AllocationFailed``."""
    nbytes = count * dtype.itemsize
    if nbytes == 0:
        return np.zeros(count, dtype=dtype)
    agree_on_memory(comm, nbytes, _why_not(nbytes, leads=comm.is_leader))
    mapping, problem = _map_window(owned, nbytes)
    if mapping is not None and comm.is_leader:
        problem = _populate(mapping, nbytes, interleave=interleave)
    agree_on_memory(comm, nbytes, problem)
    assert mapping is not None
    return np.frombuffer(mapping, dtype=dtype, count=count)


def _why_not(nbytes: int, *, leads: bool) -> str:
    """Try first: an MPI that is asked for too much may end the job."""

    def check() -> None:
        if leads:
            check_space(SHM_FOLDER if SHM_FOLDER.is_dir() else "/", nbytes)
        os.close(os.open(os.devnull, os.O_RDONLY))
        # Twice, as the window and its second mapping will be.
        mmap.mmap(-1, 2 * nbytes, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ).close()

    return attempt(check)[1]


def _map_window(owned: OwnedObjects, nbytes: int) -> tuple[NDArray[np.uint8] | None, str]:
    """Return the window's memory as memory of this process, or a problem."""
    from mpi4py import MPI

    node = owned.node
    if node.size == 1:  # nothing to share; Open MPI has private memory then
        return _heap(nbytes)
    try:
        window = MPI.Win.Allocate_shared(nbytes if node.rank == 0 else 0, 1, comm=node)
    except MPI.Exception as error:
        return None, f"MPI_Win_allocate_shared: {error}"
    buffer, _ = window.Shared_query(0)
    mapping = _second_mapping(buffer.address, nbytes)
    # Freeing is collective, so all ranks of the node must do it, or none.
    everywhere = node.allreduce(mapping is not None, MPI.LAND)
    if everywhere:
        window.Free()
        return mapping, ""
    owned.windows.append(window)
    return _bytes_at(buffer.address, nbytes), ""


def _bytes_at(address: int, nbytes: int) -> NDArray[np.uint8]:
    memory: Any = (ctypes.c_char * nbytes).from_address(address)
    return np.frombuffer(memory, dtype=np.uint8)


def _heap(nbytes: int) -> tuple[NDArray[np.uint8] | None, str]:
    try:
        return np.zeros(nbytes, dtype=np.uint8), ""
    except MemoryError as error:
        return None, str(error)


def _second_mapping(address: int, nbytes: int) -> NDArray[np.uint8] | None:
    """Map the pages of a shared mapping once more; None where that cannot be done."""
    if sys.platform != "linux":
        return None
    start = address // PAGE_BYTES * PAGE_BYTES
    length = -(-(address + nbytes - start) // PAGE_BYTES) * PAGE_BYTES
    remap = libc().mremap
    remap.restype = ctypes.c_void_p
    remap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
    mapped = remap(start, 0, length, MREMAP_MAYMOVE)
    if mapped in (None, FAILED):
        return None
    return np.asarray(Mapping(mapped, length, mapped + address - start, nbytes))


def _populate(memory: NDArray[np.uint8], nbytes: int, *, interleave: bool) -> str:
    """Take all pages now, as zeros; return a problem if they cannot be had."""
    address = int(memory.ctypes.data)
    first = -(-address // PAGE_BYTES) * PAGE_BYTES
    if interleave:
        numa.interleave(first, nbytes)
    begin = address // PAGE_BYTES * PAGE_BYTES
    for start in range(begin, address + nbytes, POPULATE_PIECE_BYTES):
        length = min(POPULATE_PIECE_BYTES, address + nbytes - start)
        if libc().madvise(start, length, MADV_POPULATE_WRITE) != 0:
            code = ctypes.get_errno()
            if code in (errno.EFAULT, errno.ENOMEM):
                return f"{os.strerror(code)} in shared memory"
            break  # an older kernel: the space that was checked has to do
    memory[:] = 0
    return ""
