"""ShmBackend: life cycle of a communicator over one shared segment."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import sys
import zlib
from collections.abc import Callable

import numpy as np
from cobre_kernels import access, layout, libc
from cobre_kernels.kind import CREATE_REGION, FENCE, HASH_MASK, SPLIT
from cobre_kernels.shm.allgatherv import allgatherv_kernel
from cobre_kernels.shm.allreduce import allreduce_kernel
from cobre_kernels.shm.barrier import synchronise_kernel
from cobre_kernels.shm.broadcast import broadcast_kernel
from numpy.typing import DTypeLike

from cobre_comm import jit
from cobre_comm.backends.kernel_backend import KernelBackend, KernelSet
from cobre_comm.backends.shm.ownership import is_locked
from cobre_comm.backends.shm.region import ShmRegion, map_region
from cobre_comm.backends.shm.rendezvous import rendezvous
from cobre_comm.config import ShmConfig
from cobre_comm.cores import usable_cores
from cobre_comm.errors import InvalidCommunicator
from cobre_comm.shared_region import region_layout

KERNELS = KernelSet(synchronise_kernel, broadcast_kernel, allreduce_kernel, allgatherv_kernel)

PAGE_BYTES: int = layout.PAGE_BYTES
LARGEST_BUFFER_BYTES = 3 * 2**20  # slots of 1 MiB: the fewest steps
SMALLEST_BUFFER_BYTES = 48 * 2**10
ALL_BUFFERS_BYTES = 16 * 2**20  # a quarter of the /dev/shm of a container that asks for nothing
SPIN_US = 30.0  # when every rank has a core
YIELD_US = 200.0  # after the spin, before the first futex
PORTABLE_VARIABLE = "COBRE_COMM_PORTABLE_WAIT"


class ShmBackend(KernelBackend):
    """R processes on one machine, over POSIX shared memory, atomics and futex.

    Parameters
    ----------
    config : ShmConfig
        Where the ranks meet. Returns when all of them have.
    leader_lives : callable, optional
        Tells whether rank 0 can still come, where the ranks have met before.

    Raises
    ------
    InitializationFailed
        If they do not, or the segment cannot be used.
    """

    __slots__ = ("_announce", "_config", "_names", "_segment")

    def __init__(self, config: ShmConfig, leader_lives: Callable[[], bool] = lambda: True) -> None:
        super().__init__(KERNELS, layout.SHM, config.rank, config.size)
        self._config = config
        self._names = itertools.count()
        self._announce = access.announce_kernel.call  # loaded now: __del__ may run at exit
        self._segment = rendezvous(config, choose_buffer_bytes(config), leader_lives)
        address = self._segment.address
        buffer_bytes = int(access.load_word_kernel.call(address + layout.BUFFER_BYTES))
        self._set(layout.CONTROL, address)
        self._set(layout.BUFFERS, address + layout.buffers_offset(config.size))
        self._set(layout.BUFFER_STRIDE, buffer_bytes)
        self._set(layout.CHUNK_BYTES, layout.chunk_bytes(buffer_bytes))
        self._set(layout.TIMEOUT_NS, int(config.timeout_s * libc.NS_PER_S))
        self._set(layout.SPIN_NS, int(choose_spin_us(config) * 1000))
        self._set(layout.YIELD_NS, int(YIELD_US * 1000))
        self._set(
            layout.PORTABLE, 1 if os.environ.get(PORTABLE_VARIABLE) or not libc.HAS_FUTEX else 0
        )
        self._set(layout.LIVENESS_FD, self._segment.fd)

    @property
    def backend(self) -> str:
        """``"shm"``."""
        return "shm"

    @property
    def is_leader(self) -> bool:
        """True on rank 0."""
        return self._rank == 0

    def create_shared_region(self, count: int, dtype: DTypeLike = np.float64) -> ShmRegion:
        """See :meth:`SharedMemoryProvider.create_shared_region`; one copy in memory."""
        elements, element_type = region_layout(count, dtype)
        shape = zlib.crc32(f"{elements} {element_type.str} {element_type.descr}".encode())
        self._synchronise(
            CREATE_REGION | (shape & HASH_MASK) << 32, elements * element_type.itemsize
        )
        number = next(self._names)
        memory = map_region(self, f"{self._config.name}.{number}", elements, element_type,
                            interleave=self._config.numa_interleave)  # fmt: skip
        return ShmRegion(self, memory, number)

    def fence_region(self, identity: int) -> None:
        """Meet at a fence; a step publishes all writes before it (release, acquire)."""
        self._synchronise(FENCE, identity)

    def split_local(self) -> ShmBackend:
        """Return an independent communicator of the same ranks."""
        self._synchronise(SPLIT, 0)
        name = f"{self._config.name}.{next(self._names)}"
        return ShmBackend(
            dataclasses.replace(self._config, name=name),
            leader_lives=lambda: is_locked(self._segment.fd, 0),
        )

    def close(self) -> None:
        """See :meth:`Communicator.close`."""
        guard = self._get(layout.GUARD)
        if guard in (layout.GUARD_CLOSED, layout.GUARD_FORKED) or not self._get(layout.CONTROL):
            return
        if guard == layout.BUSY:
            raise InvalidCommunicator("close: another thread is inside a collective")
        super().close()
        if guard != layout.GUARD_BROKEN:  # a broken one has said so already
            self._announce(self._address, layout.CLOSED)
        self._set(layout.CONTROL, 0)
        self._segment.close()
        del self._segment

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if is_finalizing():
            return  # closed at exit already, or the kernel drops the lock in a moment
        # Half made, or inside a collective of another thread.
        with contextlib.suppress(AttributeError, InvalidCommunicator):
            self.close()


def choose_buffer_bytes(config: ShmConfig) -> int:
    """Return the bytes of collective buffer per rank, a multiple of a page."""
    if config.buffer_bytes is not None:
        return -(-config.buffer_bytes // PAGE_BYTES) * PAGE_BYTES
    share = ALL_BUFFERS_BYTES // config.size // PAGE_BYTES * PAGE_BYTES
    return max(SMALLEST_BUFFER_BYTES, min(LARGEST_BUFFER_BYTES, share))


def choose_spin_us(config: ShmConfig) -> float:
    """Return how long a wait spins: not at all if a spinning rank may keep a peer from running."""
    if config.spin_us is not None:
        return config.spin_us
    return SPIN_US if config.size <= usable_cores() else 0.0


jit.register_backend(ShmBackend, jit.ShmCommType())
jit.register_region(ShmRegion, synchronises=True)
