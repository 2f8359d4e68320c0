"""Memory of a process that other processes of the same user can read, to see what it does.

The memory has no name in any file system. Other processes find it among the descriptors of the
process, and the kernel frees the memory when the process ends. Nobody asks the rank, so a rank that
hangs or is stopped can be seen like any other rank.

Sources: memfd_create(2), since Linux 3.17; on other systems such memory is private. proc_pid_fd(5):
a process of the same user may look, without further privileges.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

import numpy as np
from cobre_kernels.machine import access
from cobre_kernels.machine.record import WORD_BYTES
from numpy.typing import NDArray

from cobre_comm.system.descriptor import Descriptor
from cobre_comm.system.mapping import map_file

SEGMENTS = ("/dev/shm/", "/memfd:")  # prefixes of the paths to which descriptors of segments lead


def show(name: str, nbytes: int) -> tuple[Descriptor | None, NDArray[np.int64]]:
    """Return zeroed memory, and the descriptor by which other processes find it by a name."""
    try:
        file = Descriptor(os.memfd_create, name)
        os.posix_fallocate(file.number, 0, nbytes)
        return file, map_file(file.number, nbytes).view(np.int64)
    except (AttributeError, OSError):  # no Linux, or a sandbox
        return None, np.zeros(nbytes // WORD_BYTES, dtype=np.int64)


def shown(pid: int, name: str, nbytes: int) -> Iterator[NDArray[np.int64]]:
    """Yield the words of the memory that a process shows by a name.

    The memory stays mapped as long as the array exists. Nothing is yielded if the process has ended
    or belongs to another user, or on another system than Linux.
    """
    for path in shared_files(pid):
        try:
            if not is_shown_as(name, path):
                continue
            with contextlib.closing(open_shared(path)) as file:
                if os.fstat(file.number).st_size < nbytes:
                    continue  # memory of another version
                words = map_file(file.number, nbytes, writable=False).view(np.int64)
        except OSError:  # closed meanwhile
            continue
        yield words


def is_shown_as(name: str, path: str) -> bool:
    """Whether a descriptor leads to memory that is shown by a name."""
    return os.readlink(path).startswith(f"/memfd:{name}")  # noqa: PTH115


def shared_files(pid: int) -> Iterator[str]:
    """Yield the paths of the descriptors of a process that may lead to shared memory.

    Only regular files are yielded. A pipe may be in /dev/shm too, and opening a pipe would wait for
    its writer.
    """
    folder = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):  # the process has ended, or belongs to another user
        for number in os.listdir(folder):  # noqa: PTH208
            path = f"{folder}/{number}"
            with contextlib.suppress(OSError):  # the descriptor was closed meanwhile
                # pathlib would intern each part of each target, in a table that only grows.
                is_there = os.readlink(path).startswith(SEGMENTS)  # noqa: PTH115
                if is_there and stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
                    yield path


def open_shared(path: str) -> Descriptor:
    """Open a file that :func:`shared_files` has found; by now its path may lead to another file."""
    return Descriptor(os.open, path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)


def load(address: int) -> int:
    """Load a word that another process may write, with acquire."""
    return int(access.load_word_kernel.call(address))


def store(address: int, value: int) -> None:
    """Store a word for other processes, with release; the caller names the load it pairs with."""
    access.store_word_kernel.call(address, value)
