"""The header of a communicator's segment: rank 0 writes it, others check it and register."""

from __future__ import annotations

import ctypes
import os

from cobre_kernels.machine.record import View
from cobre_kernels.shm import control
from cobre_kernels.shm.control import CONTROL

from cobre_comm.backends.shm import segment as segments
from cobre_comm.backends.shm.buffers import choose_cast_bytes
from cobre_comm.backends.shm.segment import Segment
from cobre_comm.config import ShmConfig
from cobre_comm.errors import InitializationFailed
from cobre_comm.journal.shown import load, store
from cobre_comm.sources import Sources, own_sources


def words(segment: Segment) -> View:
    """Return the control region; its attributes are the addresses of its shared words."""
    return CONTROL.at(segment.address)


def segment_bytes(size: int, buffer_bytes: int) -> int:
    """Return the number of bytes of a segment for ``size`` ranks."""
    return int(control.buffers_offset(size)) + size * buffer_bytes


def own_bytes(rank: int, size: int, buffer_bytes: int) -> range:
    """Return the bytes of a segment that a rank reserves: its buffer, and, on rank 0, the rest."""
    begin = int(control.buffers_offset(size)) + rank * buffer_bytes
    return range(begin if rank else 0, begin + buffer_bytes)


def publish(config: ShmConfig, segment: Segment, buffer_bytes: int) -> None:
    """Write the header, as rank 0."""
    header = words(segment)
    ours = own_sources()
    store(header.sources, ours.hash)
    ctypes.memmove(header.place, ours.place, len(ours.place))
    store(header.size, config.size)
    store(header.buffer_bytes, buffer_bytes)
    store(header.cast_bytes, choose_cast_bytes(config, buffer_bytes))
    # Release: pairs with the load of published in is_published; publishes the words above.
    store(header.published, control.MAGIC)


def is_published(config: ShmConfig, segment: Segment) -> bool:
    """Check a published header; return False if rank 0 has not published it yet."""
    header = words(segment)
    published = load(header.published)
    if published == control.UNFINISHED:
        return False
    if published != control.MAGIC:
        raise InitializationFailed("shm", f"{config.name} is not a segment of cobre_comm")
    theirs = Sources(load(header.sources), ctypes.string_at(header.place, control.PLACE_BYTES))
    differs = own_sources().against(config.rank, theirs, 0)
    if differs:
        raise InitializationFailed("shm", differs)
    size = load(header.size)
    if size != config.size:
        raise InitializationFailed(
            "shm",
            f"rank 0 made segment {config.name} for {size} ranks, this rank was told "
            f"{config.size}; check COBRE_SHM_SIZE",
        )
    buffer_bytes = load(header.buffer_bytes)
    if buffer_bytes <= 0 or segment_bytes(size, buffer_bytes) > segment.nbytes:
        raise InitializationFailed(
            "shm",
            f"segment {config.name} has {segment.nbytes} bytes, too few for {size} buffers of "
            f"{buffer_bytes} bytes; let no other program write there",
        )
    return True


def register(config: ShmConfig, segment: Segment) -> None:
    """Lock the byte of this rank, and write its process id."""
    own_pid = words(segment).blocks[config.rank].pid
    if not segments.lock(segment.fd, config.rank) or load(own_pid) != 0:
        raise InitializationFailed(
            "shm",
            f"rank {config.rank} of {config.name} is already attached, as process "
            f"{load(own_pid)}; check COBRE_SHM_RANK",
        )
    # Release: pairs with the load of pid in _await_followers; the lock is held from here on.
    store(own_pid, os.getpid())
