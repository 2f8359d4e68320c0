"""Find the journals of other processes of this machine among their open descriptors.

A journal lies in nameless memory of its rank, or in the segment of a node, which all ranks of the
node hold open. ``/proc/PID/fd`` leads to both. Ranks are not asked, so a rank that hangs or is
stopped is seen like any other.

Source: proc_pid_fd(5). The same user may look, without further privileges.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import stat
from collections.abc import Iterator

import numpy as np
from cobre_kernels.collective.seeing.journal import JOURNAL, JOURNAL_MAGIC
from cobre_kernels.machine import access
from cobre_kernels.shm import control
from cobre_kernels.shm.control import CONTROL
from numpy.typing import NDArray

from cobre_comm.journal.copied import JOURNAL_BYTES, Journal, read, value
from cobre_comm.system.descriptor import Descriptor
from cobre_comm.system.mapping import map_file

MEMORY_NAME = "cobre_comm.journal"  # in /proc/PID/fd, where a journal has its own memory
SEGMENTS = ("/dev/shm/", "/memfd:")  # where the link of a segment's descriptor leads
HEADER_BYTES: int = CONTROL.offsets["blocks"]
_NAMELESS = f"/memfd:{MEMORY_NAME}"


def shared_files(pid: int) -> Iterator[str]:
    """Yield the paths of the descriptors of a process that may be of memory with journals.

    Other things may lie in /dev/shm too: to open a pipe there would wait for its writer.
    """
    folder = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):  # it has ended, or is another user's
        for number in os.listdir(folder):  # noqa: PTH208
            path = f"{folder}/{number}"
            with contextlib.suppress(OSError):  # it was closed meanwhile
                # pathlib would intern each part of each target: a table that only grows.
                is_there = os.readlink(path).startswith(SEGMENTS)  # noqa: PTH115
                if is_there and stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
                    yield path


def open_shared(path: str) -> Descriptor:
    """Open a file that :func:`shared_files` has found; the number may mean another one by now."""
    return Descriptor(os.open, path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)


def journals_in(path: str, pid: int | None = None) -> list[Journal]:
    """Return the journals in a file of shared memory; an empty list for a file that is not ours.

    ``path`` is that of a descriptor of a process. If ``pid`` is given, only journals of this
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
            with contextlib.closing(mmap.mmap(file.number, 0, access=mmap.ACCESS_READ)) as memory:
                words = np.frombuffer(memory, np.uint8)
                found = _journals_at(words.ctypes.data, words.size, offsets, pid)
                del words  # it keeps the memory
                return found
    except (OSError, ValueError):  # it is empty, or has been closed meanwhile
        return []


def _mapped_here(path: str) -> tuple[int, int] | None:
    """Return address and length of a file that this process itself has mapped, or None.

    This process must not open such a file again. When a process closes any descriptor of a file,
    POSIX drops all its record locks on that file. Other ranks would then take this rank for dead.
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

    The kernel reads the memory for us, and returns an error where it is unmapped.
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
    """Return the offsets of the journals in a file; none if it is not ours, so it is not mapped."""
    if os.readlink(path).startswith(_NAMELESS):  # noqa: PTH115
        return range(1)
    if len(head) < HEADER_BYTES:
        return range(0)
    words = np.frombuffer(head, np.int64)
    header = CONTROL.of(words)
    if (value(header.published), value(header.version)) != (control.MAGIC, control.LAYOUT_VERSION):
        return range(0)
    size = value(header.size)
    begin = int(control.journals_offset(size))
    return range(begin, begin + size * JOURNAL_BYTES, JOURNAL_BYTES)


def own_journals(pid: int) -> Iterator[NDArray[np.int64]]:
    """Yield the words of the journals that a process keeps in memory of their own.

    The memory is mapped as long as the array lives. Yields nothing where the process has ended or
    is another user's, or on another system than Linux.
    """
    for path in shared_files(pid):
        try:
            if not os.readlink(path).startswith(_NAMELESS):  # noqa: PTH115
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
    file = open_shared(path)
    try:
        nbytes = JOURNAL.size_bytes
        if os.fstat(file.number).st_size < nbytes:
            raise OSError("of another version")
        return map_file(file.number, nbytes, writable=False).view(np.int64)
    finally:
        file.close()
