"""From a configuration to a state whose kernels can run: meet in a segment, fill in the words."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from cobre_kernels import access, layout, libc
from cobre_kernels.atomics import WORD_BYTES
from numpy.typing import NDArray

from cobre_comm.backends.shm.rendezvous import rendezvous
from cobre_comm.backends.shm.segment import Segment
from cobre_comm.config import ShmConfig
from cobre_comm.cores import usable_cores

PAGE_BYTES: int = layout.PAGE_BYTES
LARGEST_BUFFER_BYTES = 3 * 2**20  # slots of 1 MiB: the fewest steps
SMALLEST_BUFFER_BYTES = 48 * 2**10
ALL_BUFFERS_BYTES = 16 * 2**20  # a quarter of the /dev/shm of a container that asks for nothing
SPIN_US = 30.0  # when every rank has a core
YIELD_US = 200.0  # after the spin, before the first futex
PORTABLE_VARIABLE = "COBRE_COMM_PORTABLE_WAIT"


def attach(
    state: NDArray[np.int64], config: ShmConfig, leader_lives: Callable[[], bool] = lambda: True
) -> Segment:
    """Meet the other ranks and write into ``state`` what shared-memory kernels read there.

    Returns
    -------
    Segment
        Keep it as long as the kernels may run.
    """
    segment = rendezvous(config, choose_buffer_bytes(config), leader_lives)
    address = segment.address
    buffer_bytes = int(access.load_word_kernel.call(address + layout.BUFFER_BYTES))
    words = {
        layout.CONTROL: address,
        layout.BUFFERS: address + layout.buffers_offset(config.size),
        layout.BUFFER_STRIDE: buffer_bytes,
        layout.CHUNK_BYTES: layout.chunk_bytes(buffer_bytes),
        layout.TIMEOUT_NS: int(config.timeout_s * libc.NS_PER_S),
        layout.LIVENESS_FD: segment.fd,
        **patience_words(choose_spin_us(config)),
    }
    for offset, value in words.items():
        state[offset // WORD_BYTES] = value
    return segment


def patience_words(spin_us: float) -> dict[int, int]:
    """Return the words of a state that say how it waits."""
    is_portable = bool(os.environ.get(PORTABLE_VARIABLE)) or not libc.HAS_FUTEX
    return {
        layout.SPIN_NS: int(spin_us * 1000),
        layout.YIELD_NS: int(YIELD_US * 1000),
        layout.PORTABLE: 1 if is_portable else 0,
    }


def choose_buffer_bytes(config: ShmConfig) -> int:
    """Return the bytes of collective buffer per rank, a multiple of a page."""
    if config.buffer_bytes is not None:
        return -(-config.buffer_bytes // PAGE_BYTES) * PAGE_BYTES
    share = ALL_BUFFERS_BYTES // config.size // PAGE_BYTES * PAGE_BYTES
    return max(SMALLEST_BUFFER_BYTES, min(LARGEST_BUFFER_BYTES, share))


def choose_spin_us(config: ShmConfig) -> float:
    """Return how long a wait spins: not at all if a spinning rank may keep a peer from running."""
    if config.spin_us is not None:
        return config.spin_us
    return SPIN_US if config.size <= usable_cores() else 0.0
