"""A named piece of shared memory: created whole, or not at all.

Pages are reserved before a rank writes to them, so a full /dev/shm is an error here and never a
SIGBUS later. On Linux that is ``posix_fallocate``; macOS has no such call and no such file system.

Sources: shm_overview(7), posix_fallocate(3), fcntl(2) on record locks, mbind(2).
"""

from __future__ import annotations

import _posixshmem
import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import pathlib
import sys

from cobre_comm.backends.shm import numa
from cobre_comm.errors import AllocationFailed

RESERVE_PIECE_BYTES = 256 * 2**20  # a signal interrupts a reservation only between pieces
PRIVATE_MODE = 0o600
CAN_RESERVE = hasattr(os, "posix_fallocate")


class Segment:
    """An open segment, mapped at ``address``.

    Its descriptor stays open as long as the record locks on it are needed: POSIX drops all locks
    of a process on a file when the process closes any descriptor of that file.
    """

    def __init__(self, fd: int, nbytes: int) -> None:
        self.fd = fd
        self.memory = mmap.mmap(fd, nbytes)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    def lock(self, byte: int) -> bool:
        """Take the record lock on one byte for this process; False if another one holds it."""
        try:
            fcntl.lockf(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
            raise
        return True

    def close(self) -> None:
        """Close the descriptor; the mapping goes when the last view of it does."""
        if self.fd >= 0:
            with contextlib.suppress(OSError):  # the program has closed it behind our back
                os.close(self.fd)
            self.fd = -1


def create(name: str, nbytes: int, *, owned: bytes = b"", interleave: bool = False) -> Segment:
    """Create a segment that did not exist before, with all its pages: ``owned``, then zeros.

    To reserve the pages takes time. So ``owned`` is written first, and the record lock on byte 0 is
    taken before it: a rank that finds the file can tell that it is ours, and that its owner lives.
    Without ``owned`` there is no lock.

    Raises
    ------
    FileExistsError
        If the name is taken.
    AllocationFailed
        If the memory cannot be had; nothing is left behind.
    """
    fd = _posixshmem.shm_open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode=PRIVATE_MODE)
    try:
        os.fchmod(fd, PRIVATE_MODE)  # for any umask
        if owned:
            fcntl.lockf(fd, fcntl.LOCK_EX, 1, 0)
        if CAN_RESERVE:
            os.pwrite(fd, owned, 0)
            check_space(fd, nbytes)
        os.ftruncate(fd, nbytes)
        segment = Segment(fd, nbytes)
        if not CAN_RESERVE:  # macOS: such a file is not written, only mapped
            segment.memory[: len(owned)] = owned
        if interleave:
            numa.interleave(segment.address, nbytes)
        _reserve(fd, nbytes)
    except BaseException as error:
        os.close(fd)
        unlink(name)
        if isinstance(error, OSError):
            raise AllocationFailed(nbytes, f"{error.strerror} in shared memory") from error
        raise
    return segment


def open_existing(name: str) -> int:
    """Open a segment by name; return its descriptor."""
    return int(_posixshmem.shm_open(name, os.O_RDWR, mode=PRIVATE_MODE))


def unlink(name: str) -> None:
    """Remove the name, if it is still there."""
    with contextlib.suppress(FileNotFoundError):
        _posixshmem.shm_unlink(name)


def check_space(file: int | str, nbytes: int) -> None:
    """Raise ``AllocationFailed`` if the machine, or the file system of ``file``, has less.

    So a request that cannot fit is refused before a single page of it is taken.
    """
    available_bytes = _available_memory_bytes()
    if available_bytes < nbytes:
        raise AllocationFailed(nbytes, f"this machine has {available_bytes} bytes available")
    space = os.statvfs(file)
    free_bytes = space.f_bavail * space.f_frsize
    if space.f_blocks > 0 and free_bytes < nbytes:
        total_bytes = space.f_blocks * space.f_frsize
        raise AllocationFailed(
            nbytes,
            f"shared memory has {free_bytes} of {total_bytes} bytes free; in a container, start "
            "it with a larger --shm-size",
        )


def _available_memory_bytes() -> int:
    try:
        lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return sys.maxsize
    return next(
        (int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")),
        sys.maxsize,
    )


def _reserve(fd: int, nbytes: int) -> None:
    if CAN_RESERVE:
        for start in range(0, nbytes, RESERVE_PIECE_BYTES):
            os.posix_fallocate(fd, start, min(RESERVE_PIECE_BYTES, nbytes - start))
