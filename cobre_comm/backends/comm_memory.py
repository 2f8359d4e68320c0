"""The memory of a communicator's record, which shows whether this process was forked.

Most words of the record are written elsewhere: limits and spins in ``wait_times.py``, the addresses
of kernels in ``kernel_backend.py``.

The guard is the record's first word, and the last word of a page that holds nothing else. In the
child of a fork, Linux fills this page with zeros, and a guard of zero says FORKED. The page works
even if a C library forks, which runs no hook of Python, and it costs the collectives nothing.

Source: madvise(2) on MADV_WIPEONFORK, since Linux 4.14. On other systems only the hook of
:func:`os.register_at_fork` in ``kernel_backend.py`` marks the guard.
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
    """Return a new record for ``size`` ranks: zeros, the state IDLE, and the table of regions."""
    words: NDArray[Any] = COMM.array(size)
    if sys.platform == "linux":
        assert COMM.offsets["guard"] == 0
        page = mmap.PAGESIZE
        memory = mmap.mmap(-1, page + words.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with contextlib.suppress(OSError):  # this Linux is too old
            memory.madvise(MADV_WIPEONFORK, 0, page)
        words = np.frombuffer(memory, np.int64, words.size, offset=page - WORD_BYTES)
    comm = COMM.of(words)
    comm.regions = REGION_TABLE.address
    comm.stop = STOP_SIGNALS.flag
    poke_now(comm.guard, IDLE)
    return words


def describe_pace(comm: View, among: int, block: Kernel, look_around: Kernel) -> View:
    """Make these kernels block and poll in all waits among RANKS, or in all waits among LEADERS.

    Return the record of this pace of waiting, in which the caller still has to set the times.
    """
    comm.pause_kernel = pause_kernel.address
    pace: View = comm.paces[among]
    pace.block_kernel, pace.look_around_kernel = block.address, look_around.address
    return pace
