"""A piece of shared memory, which is reserved as a whole before it is used, or not used at all.

Pages are reserved before a rank writes to them, so a full /dev/shm is an error at once, and never a
SIGBUS later. Linux reserves by ``posix_fallocate``. macOS lacks this call, and has no /dev/shm that
could be full. When all ranks have met, the name of a segment is removed (``rendezvous.py``). If
they do not meet, the launcher or its guardian removes the name (``processes/guardian.py``), or the
next job that has the same name does (``ownership.py``).

Sources: shm_overview(7), posix_fallocate(3), fcntl(2) on record locks, mbind(2).
"""

from __future__ import annotations

import _posixshmem
import contextlib
import fcntl
import os
import pathlib
import sys

from cobre_comm.backends.shm import numa
from cobre_comm.errors import AllocationFailed
from cobre_comm.system.cgroups import memory_left
from cobre_comm.system.descriptor import Descriptor
from cobre_comm.system.mapping import map_file

SHM_FOLDER = pathlib.Path("/dev/shm")  # where Linux has the files of shm_open
# Signals are served between two pieces. Before Linux 6.10, a signal undoes the piece under way.
RESERVE_PIECE_BYTES = 8 * 2**20
PRIVATE_MODE = 0o600
CAN_RESERVE = hasattr(os, "posix_fallocate")


class Segment:
    """An open file, mapped at ``address``.

    The pages that a rank reserves come from its own NUMA node, so each rank reserves the pages that
    it will write to. No rank uses the memory before all pages are reserved.

    The descriptor stays open as long as record locks on the file are needed: POSIX drops all locks
    of a process on a file when the process closes any descriptor of that file.
    """

    def __init__(self, file: Descriptor, nbytes: int) -> None:
        self._file = file
        self.nbytes = nbytes
        self.memory = map_file(file.number, nbytes)
        self.address = int(self.memory.ctypes.data)

    def reserve(self, own: range) -> None:
        """Take the pages of these bytes of the file; ``AllocationFailed`` if there is no room."""
        if not CAN_RESERVE:
            return
        try:
            for start in own[::RESERVE_PIECE_BYTES]:
                piece = min(RESERVE_PIECE_BYTES, own.stop - start)
                os.posix_fallocate(self.fd, start, piece)
        except OSError as error:
            raise AllocationFailed(self.nbytes, _reason(error)) from error

    @property
    def fd(self) -> int:
        """The descriptor."""
        return self._file.number

    def close(self) -> None:
        """Close the descriptor; the memory stays mapped as long as there is a view of it."""
        self._file.close()


def lock(fd: int, byte: int) -> bool:
    """Take the record lock on one byte for this process; False if another process holds it."""
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return False
    return True


def create_named(name: str) -> Descriptor:
    """Create a new, empty file; ``FileExistsError`` if the name is taken."""
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR
    file = Descriptor(_posixshmem.shm_open, name, flags, PRIVATE_MODE)
    os.fchmod(file.number, PRIVATE_MODE)  # whatever the umask is
    return file


def open_named(name: str) -> Descriptor:
    """Open a file by name."""
    return Descriptor(_posixshmem.shm_open, name, os.O_RDWR, PRIVATE_MODE)


def unlink(name: str) -> None:
    """Remove the name, if it is still there."""
    with contextlib.suppress(FileNotFoundError):
        _posixshmem.shm_unlink(name)


def extend(
    file: Descriptor, nbytes: int, own: range, *, begins: bytes = b"", interleave: bool = False
) -> Segment:
    """Give an empty file its length and its first bytes, and reserve the pages of this rank.

    This rank reserves the pages of the bytes ``own``; other ranks reserve the other pages. The
    first bytes, ``begins``, are written before a page is reserved, because reserving takes time.
    All other bytes are zeros. ``interleave`` spreads the pages of the segment over the NUMA nodes,
    whichever rank reserves them. ``AllocationFailed`` is raised if this machine has no room for
    ``nbytes``.
    """
    fd = file.number
    try:
        if CAN_RESERVE:
            os.pwrite(fd, begins, 0)
            _check_space(fd, nbytes)
        os.ftruncate(fd, nbytes)
        segment = Segment(file, nbytes)
        if not CAN_RESERVE:  # macOS: such a file can only be mapped, not written
            segment.memory[: len(begins)] = list(begins)
        if interleave:
            numa.interleave(segment.address, nbytes)
    except OSError as error:
        raise AllocationFailed(nbytes, _reason(error)) from error
    segment.reserve(own)
    return segment


def _reason(error: OSError) -> str:
    return f"{error.strerror} in shared memory"


def _check_space(fd: int, nbytes: int) -> None:
    """Raise ``AllocationFailed`` if the machine, the memory limit or the file system is too full.

    So a request that cannot fit is refused before any of its pages is taken.
    """
    available_bytes = _available_memory_bytes()
    if available_bytes < nbytes:
        raise AllocationFailed(nbytes, f"this machine has {available_bytes} bytes available")
    left_bytes = memory_left()
    if left_bytes < nbytes:
        raise AllocationFailed(
            nbytes,
            f"the limit of memory that holds this process leaves {left_bytes} bytes; it is that of "
            "a container, a batch job or a service",
        )
    space = os.statvfs(fd)
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
