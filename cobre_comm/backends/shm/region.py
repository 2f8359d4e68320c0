"""Regions in segments of their own, made and unlinked as the segment of a communicator is."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre_comm.backends.shm import segment as segments
from cobre_comm.backends.shm.segment import Segment
from cobre_comm.errors import CommError
from cobre_comm.shared_region import MappedRegion, RegionOwner, agree_on_memory


class ShmRegion(MappedRegion):
    """A region in a segment of its own."""


def map_region(
    comm: RegionOwner, name: str, count: int, dtype: np.dtype[Any], *, interleave: bool
) -> NDArray[Any]:
    """Create or map the segment of a region; on failure all ranks raise ``AllocationFailed``."""
    nbytes = count * dtype.itemsize
    if nbytes == 0:
        return np.zeros(count, dtype=dtype)
    segment, problem = None, ""
    try:
        if comm.is_leader:
            # Only a dead owner of the communicator's own name can have left this one.
            segments.unlink(name)
            segment, problem = _attempt(
                lambda: segments.create(name, nbytes, interleave=interleave)
            )
        agree_on_memory(comm, nbytes, problem)
        if not comm.is_leader:
            segment, problem = _attempt(lambda: _open(name, nbytes))
        agree_on_memory(comm, nbytes, problem)
    finally:
        if comm.is_leader:
            segments.unlink(name)
        if segment is not None:  # the mapping keeps a descriptor of its own
            segment.close()
    assert segment is not None
    return np.frombuffer(segment.memory, dtype=dtype, count=count)


def _open(name: str, nbytes: int) -> Segment:
    fd = segments.open_existing(name)
    try:
        return Segment(fd, nbytes)
    except BaseException:
        os.close(fd)
        raise


def _attempt(make: Callable[[], Segment]) -> tuple[Segment | None, str]:
    """Return a segment, or why there is none: the other ranks wait for this rank to agree."""
    try:
        return make(), ""
    except CommError as error:
        return None, getattr(error, "message", str(error))
    except (OSError, ValueError, OverflowError, MemoryError) as error:
        return None, str(error) or type(error).__name__
