"""Regions in segments of their own, which never have a name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre_comm.backends.region_table import REGION_TABLE, draw_number
from cobre_comm.backends.shm.nameless import share_segment
from cobre_comm.common.agreement import Group
from cobre_comm.common.mapping import Listing, mapping_of


def map_region(
    group: Group, count: int, dtype: np.dtype[Any], *, leader: int = 0, interleave: bool
) -> NDArray[Any]:
    """Return an array of zeros that the ranks of a node share; all ranks raise if one fails."""
    nbytes = count * dtype.itemsize
    if nbytes == 0:
        return np.zeros(count, dtype=dtype)
    segment = share_segment(group, nbytes, leader=leader, interleave=interleave)
    segment.close()  # no lock on it is needed; the mapping stays
    # Nodes draw together, and their leaders' ranks tell their regions apart.
    list_region(segment.memory, group.agree(draw_number()) + leader)
    return segment.memory.view(dtype)


def list_region(memory: NDArray[np.uint8], number: int) -> None:
    """Let kernels find mapped memory as the region of this number, until it is unmapped."""
    mapping = mapping_of(memory)
    if mapping is not None:
        strike_off = REGION_TABLE.add(number, int(memory.ctypes.data), memory.nbytes)
        mapping.listing = Listing(strike_off)
