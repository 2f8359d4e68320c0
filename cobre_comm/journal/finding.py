"""Finds the journals of other processes of this machine among their open descriptors.

A journal is in memory that its rank shows (``shown.py``), or in the segment of a node, which all
ranks of the node hold open. ``/proc/PID/fd`` leads to both kinds of memory.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import numpy as np
from cobre_kernels.collective.seeing.journal import JOURNAL, JOURNAL_MAGIC
from cobre_kernels.shm import control
from cobre_kernels.shm.control import CONTROL
from numpy.typing import NDArray

from cobre_comm.journal.copied import JOURNAL_BYTES, Journal, read, value
from cobre_comm.journal.shown import is_shown_as, load, open_shared, shown
from cobre_comm.sources import own_sources
from cobre_comm.system.mapping import map_file

MEMORY_NAME = "cobre_comm.journal"  # in /proc/PID/fd, the name of the memory of a single journal
HEADER_BYTES: int = CONTROL.offsets["blocks"]


def journals_in(path: str, pid: int | None = None) -> list[Journal]:
    """Return the journals in a file of shared memory; no journals if the file is not ours.

    ``path`` is the path of a descriptor of a process. If ``pid`` is given, only journals of this
    process are returned.
    """
    try:
        here = _mapped_here(path)
        if here is not None:
            return _copied_from_here(path, *here, pid)
        with contextlib.closing(open_shared(path)) as file:
            offsets = _offsets(path, os.pread(file.number, HEADER_BYTES, 0))
            if not offsets:
                return []
            words = map_file(file.number, os.fstat(file.number).st_size, writable=False)
            return _journals_at(words.ctypes.data, words.size, offsets, pid)
    except (OSError, ValueError):  # the file is empty, or has been closed meanwhile
        return []


def _mapped_here(path: str) -> tuple[int, int] | None:
    """Return the address and the length of a file that this process itself has mapped, or None.

    This process must not open such a file again: when a process closes any descriptor of a file,
    POSIX drops all record locks of the process on that file. Then other ranks would believe that
    this rank is dead.
    """
    status = os.stat(path)  # noqa: PTH116
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    wanted = "00000000", device, str(status.st_ino)
    with open("/proc/self/maps") as lines:  # noqa: PTH123
        for line in lines:
            span, _, *where = line.split(None, 5)[:5]
            if tuple(where) == wanted:
                begin, end = (int(edge, 16) for edge in span.split("-"))
                return begin, end - begin
    return None


def _copied_from_here(path: str, address: int, nbytes: int, pid: int | None) -> list[Journal]:
    """Copy the journals in memory of this process, which another thread may unmap at any time.

    The kernel reads the memory for this process, and returns an error if the memory is unmapped.
    """
    with open("/proc/self/mem", "rb") as memory:  # noqa: PTH123
        offsets = _offsets(path, os.pread(memory.fileno(), min(nbytes, HEADER_BYTES), address))
        whole = [address + o for o in offsets if o + JOURNAL_BYTES <= nbytes]
        copies = [os.pread(memory.fileno(), JOURNAL_BYTES, at) for at in whole]
    words = [np.frombuffer(copy, np.uint8) for copy in copies]
    found = [_journals_at(copy.ctypes.data, copy.size, range(1), pid) for copy in words]
    return [journal for some in found for journal in some]


def _journals_at(address: int, nbytes: int, offsets: range, pid: int | None) -> list[Journal]:
    whole = [address + o for o in offsets if o + JOURNAL_BYTES <= nbytes]
    found = [read(at) for at in whole if pid in (None, load(JOURNAL.at(at).pid))]
    return [journal for journal in found if journal is not None]


def _offsets(path: str, head: bytes) -> range:
    """Return the offsets of the journals in a file; none if the file is not ours."""
    if is_shown_as(MEMORY_NAME, path):
        return range(1)
    if len(head) < HEADER_BYTES:
        return range(0)
    words = np.frombuffer(head, np.int64)
    header = CONTROL.of(words)
    if (value(header.published), value(header.sources)) != (control.MAGIC, own_sources().hash):
        return range(0)
    size = value(header.size)
    begin = int(control.journals_offset(size))
    return range(begin, begin + size * JOURNAL_BYTES, JOURNAL_BYTES)


def own_journals(pid: int) -> Iterator[NDArray[np.int64]]:
    """Yield the words of the journals that a process keeps in memory of their own."""
    for words in shown(pid, MEMORY_NAME, JOURNAL_BYTES):
        view = JOURNAL.of(words)
        if load(view.magic) == JOURNAL_MAGIC and load(view.pid) == pid:
            yield words
