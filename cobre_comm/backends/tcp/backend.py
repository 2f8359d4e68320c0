"""TcpBackend: life cycle of a communicator over sockets."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable

import numpy as np
from cobre_kernels.collective import comm as states
from cobre_kernels.collective.calls import SPLIT
from cobre_kernels.machine import access, libc
from cobre_kernels.machine.kernel import Kernel
from cobre_kernels.tcp.allgatherv import allgatherv_body
from cobre_kernels.tcp.allreduce import allreduce_body
from cobre_kernels.tcp.barrier import barrier_body
from cobre_kernels.tcp.broadcast import broadcast_body
from cobre_kernels.tcp.gatherv import gatherv_body
from cobre_kernels.tcp.progress.control import abandon_body, goodbye_kernel
from cobre_kernels.tcp.progress.neighbours import advance_kernel
from cobre_kernels.tcp.progress.transfer import transfer_kernel
from numpy.typing import DTypeLike

from cobre_comm.backends.kernel_backend import COMMON_KERNELS, Bodies, KernelBackend
from cobre_comm.backends.local import backend as local
from cobre_comm.backends.tcp.memory import LinkMemory
from cobre_comm.backends.tcp.rendezvous import Links, rendezvous
from cobre_comm.backends.tcp.spec import TCP
from cobre_comm.common.cores import usable_cores
from cobre_comm.config import TcpConfig
from cobre_comm.errors import InitializationFailed, InvalidCommunicator
from cobre_comm.jit.register import register_backend
from cobre_comm.shared_region import HeapRegion

BODIES = Bodies(
    barrier_body,
    broadcast_body,
    allreduce_body,
    allgatherv_body,
    abandon_body,
    gatherv_body,
    helpers=(transfer_kernel, advance_kernel, goodbye_kernel),
)

STAR_BYTES = 64 * 1024  # on one machine; measured, see docs/benchmarks/tcp.md
FAR_STAR_BYTES = 8 * 1024  # a network is slower than loopback
SPIN_US = 50.0  # when every rank of this machine has a core
YIELD_US = 50.0  # after the spin, before the first poll


class TcpBackend(KernelBackend):
    """R processes on one machine or many, over sockets.

    Small payloads go through rank 0 and back; large ones around a ring of direct links. Nothing is
    shared between processes: a region is a heap copy on every rank, and every rank its leader.

    Parameters
    ----------
    config : TcpConfig
        Where the ranks meet. The constructor returns when all of them have linked.

    Raises
    ------
    InitializationFailed
        If a rank does not come, or cannot be reached.

    Examples
    --------
    >>> from cobre_comm import TcpBackend, TcpConfig
    >>> with TcpBackend(TcpConfig(rank=0, size=1)) as comm:
    ...     comm.sum(3)
    3
    """

    __slots__ = ("_goodbye", "_links", "_memory", "_regions", "peers_are_proven")

    def __init__(self, config: TcpConfig) -> None:
        bodies = BODIES if config.size > 1 else local.BODIES
        super().__init__(TCP, bodies, config.rank, config.size, is_leader=True)
        self._regions = itertools.count()
        # Whether every peer has shown that it knows the job's secret: then it may send pickles.
        self.peers_are_proven = bool(config.token) or config.size == 1
        self._goodbye = goodbye_kernel.call  # loaded now: __del__ may run at exit
        self._links: Links | None = None
        if config.star_bytes is None:
            self._links = rendezvous(config, STAR_BYTES, far_star_bytes=FAR_STAR_BYTES)
        else:
            self._links = rendezvous(config, config.star_bytes)
        try:
            self._memory = LinkMemory(self._links, config.size)
        except MemoryError as error:
            self._close_links()
            raise InitializationFailed("tcp", f"no memory for star_bytes: {error}") from error
        self._journals.find(self._links.pids)
        spin_us, yield_us = choose_patience_us(config, self._links.ranks_here)
        comm = self._comm
        comm.links, comm.gives_gil = self._memory.links, 1
        comm.timeout_ns = config.timeout_s * libc.NS_PER_S
        comm.spin_ns, comm.yield_ns = spin_us * 1000, yield_us * 1000

    @property
    def backend(self) -> str:
        """``"tcp"``."""
        return "tcp"

    def create_shared_region(self, count: int, dtype: DTypeLike = np.float64) -> HeapRegion:
        """Return an array of zeros, a copy on each rank's heap; collective."""
        elements, element_type = self._agree_on_region(count, dtype)
        with self._together():
            memory = local.heap_zeros_of_each(self, elements, element_type)
        return HeapRegion(self, memory, next(self._regions))

    def split_local(self) -> local.LocalBackend:
        """Return the communicator of this rank alone: no other shares memory with it."""
        self._agree_on(SPLIT, 0)
        return local.LocalBackend()

    def mark_forked(self) -> None:
        """In a forked child: close its copies of the sockets, which would keep them open."""
        super().mark_forked()
        self._close_links()

    def _close_links(self) -> None:
        links, self._links = self._links, None
        if links is not None:
            links.close()

    def close(self) -> None:
        """Leave the group; idempotent. Ranks that wait for this one learn that it has left."""
        guard = self._end()
        if self._links is None:
            return
        is_complete = self._comm.links.address != 0  # else an error has come before
        # A broken one has sent its report, and a forked child is no rank.
        if is_complete and guard not in (states.BROKEN, states.FORKED):
            self._goodbye(self._address)
        self._close_links()

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if is_finalizing():
            return  # closed at exit already, or the kernel ends the connections in a moment
        # Half made, or inside a collective of another thread.
        with contextlib.suppress(AttributeError, InvalidCommunicator):
            self.close()


def choose_patience_us(config: TcpConfig, ranks_here: int) -> tuple[float, float]:
    """Return how long a wait spins, and how long it then yields, before it blocks."""
    if config.spin_us is not None:
        return config.spin_us, YIELD_US
    return (SPIN_US if ranks_here <= usable_cores() else 0.0), YIELD_US


def kernels() -> list[Kernel]:
    """Return what is compiled before ranks start."""
    looks = access.load_word_kernel  # at journals of other ranks
    return [*COMMON_KERNELS, *BODIES.all(), *local.BODIES.all(), looks]


register_backend(TcpBackend, is_local=False)
