"""Regions: each region is in a segment of its own, which ``nameless.py`` makes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre_comm.backends.agreement import Group
from cobre_comm.backends.region_table import REGION_TABLE, draw_number
from cobre_comm.backends.shm.nameless import share_segment
from cobre_comm.backends.shm.segment import Segment
from cobre_comm.contract.derived import share_of
from cobre_comm.contract.shared_region import LEADER, Lengths
from cobre_comm.system.mapping import before_unmapping


def own_rows(placement: str, rows: int, rank: int, size: int) -> range:
    """Return the rows of a region that a rank owns: their pages are on the NUMA node of that rank.

    ``rows`` is the region's length along its first axis. ``size`` is the number of ranks of this
    node, and ``rank`` is a rank's number in the node. In an interleaved region it makes no
    difference which rank takes a page.
    """
    if placement == LEADER:
        return range(rows if rank == 0 else 0)
    return range(*share_of(rows, rank, size))


def map_region(
    group: Group,
    shape: Lengths,
    dtype: np.dtype[Any],
    own: range,
    leader: int,
    *,
    interleave: bool,
) -> NDArray[Any]:
    """Return an array of zeros that the ranks of a node share; if one rank fails, all raise.

    Each rank takes the pages of its ``own`` rows.
    """
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes == 0:
        return np.zeros(shape, dtype=dtype)
    row_bytes = nbytes // shape[0]
    own_bytes = range(own.start * row_bytes, own.stop * row_bytes)
    # All nodes agree on one number, and each adds its leader's rank, so that no two nodes list a
    # region by the same number.
    number = group.agree(draw_number()) + leader

    def list_it(segment: Segment) -> None:
        before_unmapping(segment.memory, REGION_TABLE.add(number, segment.address, nbytes))

    segment = share_segment(group, nbytes, own_bytes, list_it, leader=leader, interleave=interleave)
    segment.close()  # no lock is needed on a region; the mapping stays
    return segment.memory.view(dtype).reshape(shape)
