"""Attach this rank to the segment of its node, and fill the record that kernels read."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from cobre_kernels.machine import access
from cobre_kernels.machine.record import View
from cobre_kernels.shm import control, step, ways
from numpy.typing import NDArray

from cobre_comm.backends.agreement import Group
from cobre_comm.backends.shm import header
from cobre_comm.backends.shm.buffers import (
    LARGEST_BUFFER_BYTES,
    PAGE_BYTES,
    choose_buffer_bytes,
)
from cobre_comm.backends.shm.council import ShmCouncil
from cobre_comm.backends.shm.nameless import share_segment
from cobre_comm.backends.shm.ownership import process_of
from cobre_comm.backends.shm.region import map_region, own_rows
from cobre_comm.backends.shm.rendezvous import rendezvous
from cobre_comm.backends.shm.segment import Segment
from cobre_comm.backends.wait_times import wait_for_ranks
from cobre_comm.config import ShmConfig
from cobre_comm.contract.shared_region import INTERLEAVE, Lengths
from cobre_comm.journal.shown import load
from cobre_comm.system.cpus import UNKNOWN, Place, place_of


class Attachment:
    """The segment of a node that all its ranks have mapped, and to which this rank is attached."""

    def __init__(self, config: ShmConfig, segment: Segment) -> None:
        self._config, self._segment = config, segment
        self.buffer_bytes: int = load(header.words(segment).buffer_bytes)
        self._announce_closed = step.announce_closed_kernel.call  # loaded now: exit may be too late
        _ = access.exchange_word_kernel.call  # loaded for a council now: descriptors may run out

    def describe(self, comm: View) -> None:
        """Write into a communicator's record what kernels read of the node and its segment."""
        config, segment, node = self._config, self._segment, comm.node
        node.rank, node.size = config.rank, config.size
        node.control = segment.address
        node.buffers = segment.address + control.buffers_offset(config.size)
        node.buffer_stride = self.buffer_bytes
        node.chunk_bytes = control.chunk_bytes(self.buffer_bytes)
        node.cast_bytes = load(header.words(segment).cast_bytes)
        node.liveness_fd = segment.fd
        shown = node.reading.own
        shown.pid, shown.token = os.getpid(), int.from_bytes(os.urandom(8)) >> 1
        node.forced_way = ways.FASTEST
        wait_for_ranks(comm, config.size, config.timeout_s, config.spin_us)

    def first_journal(self) -> int:
        """Return the address of the journal of the first rank of this node."""
        return self._segment.address + int(control.journals_offset(self._config.size))

    def map_region(
        self, group: Group, shape: Lengths, dtype: np.dtype[Any], leader: int, placement: str
    ) -> NDArray[Any]:
        """Return an array of zeros that the ranks of a node share; on failure all ranks raise."""
        config = self._config
        own = own_rows(placement, shape[0], config.rank, config.size)
        interleave = config.numa_interleave or placement == INTERLEAVE
        return map_region(group, shape, dtype, own, leader, interleave=interleave)

    def places(self) -> list[Place]:
        """Return where each rank of this node may run, as far as this process can see that."""
        ranks = range(self._config.size)
        processes = [process_of(self._segment.fd, rank) for rank in ranks]
        processes[self._config.rank] = os.getpid()  # the system shows no process its own locks
        return [place_of(pid) if pid else UNKNOWN for pid in processes]

    def convene(self, variable: str) -> ShmCouncil:
        """Return the survivors of this node's ranks, as a council that agrees in the segment."""
        return ShmCouncil(self._segment, self._config, variable)

    def say_goodbye(self, comm: View) -> None:
        """Tell the ranks of this node that this rank closes."""
        self._announce_closed(comm.address)

    def close(self) -> None:
        """Drop the record lock, so that other ranks see this rank as gone; the mapping stays."""
        self._segment.close()


def attach(config: ShmConfig) -> Attachment:
    """Attach this rank to the segment that ``config`` names, together with the other ranks."""
    _ = step.announce_closed_kernel.call  # loaded before ranks wait for this rank
    return Attachment(config, rendezvous(config, choose_buffer_bytes(config)))


def attach_group(config: ShmConfig, group: Group, leader: int = 0) -> Attachment:
    """Attach this rank to a segment without a name, for ranks that can talk to each other already.

    The ranks of all segments are one group, and agree together: if one rank fails, all raise
    ``AllocationFailed``. ``leader`` is the rank of the group that is rank 0 of this segment, and
    ``config`` counts the ranks of this segment alone.
    """
    buffer_bytes = group.agree(choose_buffer_bytes(config))

    def prepare(segment: Segment) -> None:
        if config.rank == 0:
            header.publish(config, segment, buffer_bytes)
        else:
            header.is_published(config, segment)
        header.register(config, segment)

    segment = share_segment(
        group,
        header.segment_bytes(config.size, buffer_bytes),
        header.own_bytes(config.rank, config.size, buffer_bytes),
        prepare,
        leader=leader,
        interleave=config.numa_interleave,
        is_alone=config.size == 1,
    )
    return Attachment(config, segment)


def attach_nowhere(group: Group, leader: int) -> None:
    """Take the steps of :func:`attach_group` on a rank of color None, because all ranks must."""
    group.agree(LARGEST_BUFFER_BYTES)
    share_segment(group, PAGE_BYTES, range(PAGE_BYTES), leader=leader).close()
