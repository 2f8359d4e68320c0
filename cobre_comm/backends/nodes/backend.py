"""The base of backends whose ranks are on one node or on several."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from cobre_kernels.machine.record import View
from numpy.typing import DTypeLike

from cobre_comm.backends.late_lines import prepare_late_lines
from cobre_comm.backends.local.backend import heap_zeros_of_each
from cobre_comm.backends.nodes.memory import NodesMemory, least_buffer_bytes
from cobre_comm.backends.nodes.node_order import NodeOrder
from cobre_comm.backends.shm.attachment import SMALLEST_BUFFER_BYTES, first_journal
from cobre_comm.backends.shm.base import SegmentBackend
from cobre_comm.backends.shm.segment import Segment
from cobre_comm.backends.spec import BackendSpec
from cobre_comm.backends.split import Part
from cobre_comm.common.call_forms import tells_forms
from cobre_comm.config import MpiConfig, ShmConfig, TcpConfig
from cobre_comm.loading import Bodies
from cobre_comm.shared_region import HeapRegion, SharedRegion

STAGING_BYTES = 4 * 2**20  # of a node, where there are several

Config = TypeVar("Config", TcpConfig, MpiConfig)


@tells_forms("comm")
class NodesBackend(SegmentBackend):
    """A communicator whose record, or that of its node, is attached to a segment.

    Parameters
    ----------
    spec : BackendSpec
        Which backend.
    bodies : Bodies
        What it runs.
    order : NodeOrder
        Which ranks share memory.
    rank : int
        This rank.
    """

    __slots__ = ("_memory", "_node_order")

    def __init__(self, spec: BackendSpec, bodies: Bodies, order: NodeOrder, rank: int) -> None:
        super().__init__(spec, bodies, rank, len(order.order), is_leader=order.leader == rank)
        self._node_order = order
        self._memory: NodesMemory | None = None

    def _place(self, order: NodeOrder) -> None:
        """Note which ranks share memory, as far as that was not known before."""
        self._node_order = order
        self._comm.is_leader = order.leader == self._rank

    def _use_nodes(
        self, memory: NodesMemory, segment: Segment, least: Callable[[int], int]
    ) -> None:
        """Go on as one of the ranks that are attached to the segment of their node."""
        memory.use_staging_buffer(least)
        here = self._node_order.here.tolist()
        if len(here) > 1:  # a journal of its own is found by ranks that have only links to this one
            self._journals.move_to(segment, first_journal(memory.node), here)
        memory.node.journal = self._comm.journal
        self._late_lines.append(
            prepare_late_lines(self._comm, memory.node, here, self._words, memory, self._journals)
        )
        self._comm.gives_gil = 1
        self._segment = segment

    @property
    def _attached(self) -> View:
        """The record that is attached to a segment."""
        return self._comm if self._memory is None else self._memory.node

    def create_shared_region(self, count: int, dtype: DTypeLike = np.float64) -> SharedRegion:
        """Return an array of zeros, of which the ranks of a node share one copy; collective."""
        elements, element_type = self._agree_on_region(count, dtype)
        with self._together("create_shared_region"):
            if self._node_order.is_flat:
                heap = heap_zeros_of_each(self._group, elements, element_type)
                return HeapRegion(self, heap, next(self._regions))
            return self._map_region(elements, element_type, self._node_order.leader)

    def _say_goodbye(self) -> None:
        if self._memory is not None:
            self._memory.say_goodbye()
        else:
            super()._say_goodbye()

    def _mark_forked(self) -> None:
        """In a forked child: neither the communicator nor its node's is this process's own."""
        super()._mark_forked()
        if self._memory is not None:
            self._memory.mark_forked()


def with_staging_buffer(config: Config, order: NodeOrder) -> Config:
    """Return a configuration whose collective buffers make the staging buffer of this node."""
    share = max(STAGING_BYTES // len(order.here), SMALLEST_BUFFER_BYTES)
    wanted = max(config.buffer_bytes or share, least_buffer_bytes(order))
    return dataclasses.replace(config, buffer_bytes=wanted)


def within_node(config: TcpConfig | MpiConfig, rank: int, size: int) -> ShmConfig:
    """Return what shared memory must know of a rank among those of its node."""
    return ShmConfig(
        name="/node",  # for messages; the segment has none
        rank=rank,
        size=size,
        timeout_s=config.timeout_s,
        buffer_bytes=config.buffer_bytes,
        numa_interleave=config.numa_interleave,
        spin_us=config.spin_us,
    )


def nodes_of_part(pretended: tuple[int, ...], part: Part) -> tuple[int, ...]:
    """Return on which node each rank of a part is pretended to be."""
    return tuple(pretended[rank % len(pretended)] for rank in part.ranks) if pretended else ()
