"""The base of backends whose ranks share a segment: all of them, or those of each node."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from cobre_kernels.collective import comm as states
from cobre_kernels.shm import step
from numpy.typing import NDArray

from cobre_comm.backends.kernel_backend import KernelBackend
from cobre_comm.backends.shm.attachment import first_journal
from cobre_comm.backends.shm.region import ShmRegion, map_region
from cobre_comm.backends.shm.segment import Segment
from cobre_comm.backends.spec import BackendSpec
from cobre_comm.config import MpiConfig, ShmConfig, TcpConfig
from cobre_comm.errors import InvalidCommunicator
from cobre_comm.loading import Bodies

_ENDED = (states.CLOSED, states.FORKED, states.FINALIZED)


class SegmentBackend(KernelBackend):
    """A communicator that makes regions, and ends, as one over shared memory does.

    It has ended, or is half made, if it has no segment.
    """

    __slots__ = ("_announce_closed", "_config", "_regions", "_segment")
    _config: ShmConfig | TcpConfig | MpiConfig

    def __init__(
        self, spec: BackendSpec, bodies: Bodies, rank: int, size: int, *, is_leader: bool
    ) -> None:
        super().__init__(spec, bodies, rank, size, is_leader=is_leader)
        self._regions = itertools.count()
        # Loaded now: __del__ may run at exit.
        self._announce_closed = step.announce_closed_kernel.call
        self._segment: Segment | None = None

    def _use_segment(self, segment: Segment) -> None:
        """Go on as one of the ranks that are all attached to a segment."""
        self._segment = segment
        self._journals.move_to(segment, first_journal(self._comm), range(self._size))

    def _map_region(self, count: int, dtype: np.dtype[Any], leader: int = 0) -> ShmRegion:
        interleave = self._config.numa_interleave
        memory: NDArray[Any] = map_region(
            self._group, count, dtype, leader=leader, interleave=interleave
        )
        return ShmRegion(self, memory, next(self._regions))

    def _say_goodbye(self) -> None:
        """Tell the ranks that may wait for this one that it closes."""
        if self._comm.control.address:
            self._announce_closed(self._address)

    def close(self) -> None:
        """Leave the group; idempotent. Ranks that wait for this one learn that it has left."""
        found = self._end()
        if found in _ENDED or self._segment is None:
            return
        if found != states.BROKEN:  # a broken one has said so already
            self._say_goodbye()
        self._comm.control = 0
        self._segment.close()
        self._segment = None
        self._journals.leave_segment()

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if is_finalizing():
            return  # closed at exit already, or the kernel drops locks and links in a moment
        # Half made, or inside a collective of another thread.
        with contextlib.suppress(AttributeError, InvalidCommunicator):
            self._handled = id(sys.exception())  # it is dropped, and does not end by that
            self.close()
