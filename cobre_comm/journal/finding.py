"""Finding the journals of other processes of this machine: among their open descriptors.

Source: proc_pid_fd(5). The same user may look, without further privileges.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from cobre_kernels.collective.journal import JOURNAL, JOURNAL_MAGIC
from cobre_kernels.machine import access
from numpy.typing import NDArray

from cobre_comm.common.descriptor import Descriptor
from cobre_comm.common.mapping import map_file

MEMORY_NAME = "cobre_comm.journal"  # of a journal in memory of its own; /proc/PID/fd shows it


def own_journals(pid: int) -> Iterator[NDArray[np.int64]]:
    """Yield the words of the journals that a process keeps in memory of their own.

    They are mapped as long as the array lives. Yields nothing where the process has ended, is
    another user's, or this is no Linux.
    """
    folder = f"/proc/{pid}/fd"
    try:
        numbers = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return
    for number in numbers:
        path = f"{folder}/{number}"
        try:
            # pathlib would intern each part of each target: a table that only grows.
            if MEMORY_NAME not in os.readlink(path):  # noqa: PTH115
                continue
            words = _map(path)
        except OSError:  # closed meanwhile, or another version's
            continue
        view = JOURNAL.of(words)
        if load(view.magic) == JOURNAL_MAGIC and load(view.pid) == pid:
            yield words


def load(address: int) -> int:
    """Load a word of a journal, with acquire."""
    return int(access.load_word_kernel.call(address))


def _map(path: str) -> NDArray[np.int64]:
    file = Descriptor(os.open, path, os.O_RDONLY)
    try:
        nbytes = JOURNAL.size_bytes
        if os.fstat(file.number).st_size < nbytes:
            raise OSError("of another version")
        return map_file(file.number, nbytes, writable=False).view(np.int64)
    finally:
        file.close()
