"""The memory of a communicator's record, in which every fork leaves its mark.

Most words of the record are written elsewhere: limits and spins in ``wait_times.py``, the addresses
of kernels in ``kernel_backend.py``.

The guard is the record's first word, and ends a page of its own. Linux gives this page to the child
of a fork filled with zeros, so a child's guard says FORKED. A fork by a C library, which runs no
hook of Python, leaves the same mark, and no collective pays for it.

Source: madvise(2) on MADV_WIPEONFORK, since Linux 4.14. On other systems only the hook of
:func:`os.register_at_fork` in ``kernel_backend.py`` leaves a mark.
"""

from __future__ import annotations

import contextlib
import mmap
import sys
from typing import Any

import numpy as np
from cobre_kernels.collective.comm import COMM, IDLE
from cobre_kernels.collective.waiting.patience import pause_kernel
from cobre_kernels.machine.kernel import Kernel
from cobre_kernels.machine.record import WORD_BYTES, View, poke_now
from numpy.typing import NDArray

from cobre_comm.backends.region_table import REGION_TABLE
from cobre_comm.backends.stop_signals import STOP_SIGNALS

MADV_WIPEONFORK = 18


def comm_words(size: int) -> NDArray[np.int64]:
    """Return a new record for a communicator of ``size`` ranks: zeroed, IDLE, with the regions."""
    words: NDArray[Any] = COMM.array(size)
    if sys.platform == "linux":
        assert COMM.offsets["guard"] == 0
        page = mmap.PAGESIZE
        memory = mmap.mmap(-1, page + words.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with contextlib.suppress(OSError):  # an older Linux
            memory.madvise(MADV_WIPEONFORK, 0, page)
        words = np.frombuffer(memory, np.int64, words.size, offset=page - WORD_BYTES)
    comm = COMM.of(words)
    comm.regions = REGION_TABLE.address
    comm.stop = STOP_SIGNALS.flag
    poke_now(comm.guard, IDLE)
    return words


def describe_pace(comm: View, among: int, block: Kernel, look_around: Kernel) -> View:
    """Let the waits among RANKS, or among LEADERS, block and poll by these kernels.

    Return the record of this pace of waiting; the caller sets its times.
    """
    comm.pause_kernel = pause_kernel.address
    pace: View = comm.paces[among]
    pace.block_kernel, pace.look_around_kernel = block.address, look_around.address
    return pace
