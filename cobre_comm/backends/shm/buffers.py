"""How large the collective buffers of a node are, and how much of a buffer a broadcast uses."""

from __future__ import annotations

from cobre_kernels.shm import control

from cobre_comm.config import ShmConfig
from cobre_comm.system.cores import have_cores

PAGE_BYTES: int = control.PAGE_BYTES
LARGEST_BUFFER_BYTES = 3 * 2**20  # if ranks share cores: slots of 1 MiB make the fewest steps
CACHED_BUFFER_BYTES = 3 * 2**18  # else: slots of 256 KiB stay in the second-level cache of a core
SMALLEST_BUFFER_BYTES = 48 * 2**10
EXCHANGING_RANKS = 2  # if a node has exactly two ranks, they exchange slots (shm/slot.py)
ALL_BUFFERS_BYTES = 16 * 2**20  # a quarter of the /dev/shm that a container has by default
SHARED_CAST_BYTES = 4 * 2**20  # bytes of a step of a broadcast, if ranks share cores
CACHED_CAST_BYTES = 2**18  # if each rank has a core: one chunk is read while the next is filled


def choose_buffer_bytes(config: ShmConfig) -> int:
    """Return the bytes of collective buffer per rank, a multiple of a page."""
    if config.buffer_bytes is not None:
        return -(-config.buffer_bytes // PAGE_BYTES) * PAGE_BYTES
    share = ALL_BUFFERS_BYTES // config.size // PAGE_BYTES * PAGE_BYTES
    has_cores = have_cores(config.size, config.spin_us)
    largest = CACHED_BUFFER_BYTES if has_cores else LARGEST_BUFFER_BYTES
    return max(SMALLEST_BUFFER_BYTES, min(largest, share))


def choose_cast_bytes(config: ShmConfig, buffer_bytes: int) -> int:
    """Return the bytes that a step of a broadcast moves: whole slots.

    With many ranks a slot is small, and a step takes long if ranks share cores. But in a broadcast
    only the root sends, so the root fills the slots of other ranks too. Two ranks exchange their
    slots in every step, so a step of two ranks moves one slot.
    """
    chunk: int = control.chunk_bytes(buffer_bytes)
    has_cores = have_cores(config.size, config.spin_us)
    wanted = (CACHED_CAST_BYTES if has_cores else SHARED_CAST_BYTES) // chunk
    slots = config.size if config.size > EXCHANGING_RANKS else 1
    return chunk * max(1, min(wanted, slots))
