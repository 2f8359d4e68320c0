"""Regions in their own segments, made and unlinked the way the communicator's segment is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre_comm.backends.shm import segment as segments
from cobre_comm.backends.shm.segment import Segment
from cobre_comm.errors import AllocationFailed, CommError
from cobre_comm.shared_region import MappedRegion

if TYPE_CHECKING:
    from cobre_comm.backends.shm.backend import ShmBackend

FAILED, MADE = 0, 1


class ShmRegion(MappedRegion):
    """A region in a segment of its own."""


def map_region(
    comm: ShmBackend, name: str, count: int, dtype: np.dtype[Any], *, interleave: bool
) -> NDArray[Any]:
    """Create or map the segment of a region; on failure all ranks raise ``AllocationFailed``."""
    nbytes = count * dtype.itemsize
    if nbytes == 0:
        return np.zeros(count, dtype=dtype)
    segment, problem = None, ""
    try:
        if comm.is_leader:
            # Only an owner of the communicator's own name can have left this one, and it is dead.
            segments.unlink(name)
            segment, problem = _attempt(
                lambda: segments.create(name, nbytes, interleave=interleave)
            )
        made = comm.agree(FAILED if problem else MADE)
        if made and not comm.is_leader:
            segment, problem = _attempt(lambda: _open(name, nbytes))
        made = comm.agree(FAILED if problem or not made else MADE)
    finally:
        if comm.is_leader:
            segments.unlink(name)
    if not made or segment is None:
        raise AllocationFailed(nbytes, problem or "another rank could not; see its message")
    # The mapping keeps a descriptor of its own, and a region holds no locks.
    segment.close()
    return np.frombuffer(segment.memory, dtype=dtype, count=count)


def _open(name: str, nbytes: int) -> Segment:
    fd = segments.open_existing(name)
    try:
        return Segment(fd, nbytes)
    except BaseException:
        os.close(fd)
        raise


def _attempt(make: Any) -> tuple[Segment | None, str]:
    """Return a segment, or why there is none; the other ranks must not wait for an exception."""
    try:
        return make(), ""
    except CommError as error:
        return None, getattr(error, "message", str(error))
    except (OSError, ValueError, OverflowError, MemoryError) as error:
        return None, str(error) or type(error).__name__
