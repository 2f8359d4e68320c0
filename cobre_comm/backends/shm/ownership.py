"""The owner of a segment: which user it is, and whether its rank 0 still lives."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import sys

import numpy as np
from cobre_kernels.machine import access, libc
from cobre_kernels.machine.record import WORD_BYTES
from cobre_kernels.shm.control import CONTROL, MAGIC, UNFINISHED

from cobre_comm.backends.shm import segment as segments
from cobre_comm.backends.shm.segment import SHM_FOLDER
from cobre_comm.config import ShmConfig
from cobre_comm.errors import InitializationFailed

REMOVAL_BYTE = 2**40  # locked by whoever may remove a file's name; beyond all ranks' bytes


def is_locked(fd: int, rank: int) -> bool:
    """Whether a live process other than this one has attached as ``rank``."""
    scratch = np.zeros(libc.SCRATCH_WORDS, dtype=np.int64)
    at = scratch.ctypes.data
    return bool(access.lock_is_held_kernel.call(at, fd, rank, at))


def process_of(fd: int, rank: int) -> int:
    """Return the process that has attached as ``rank``; 0 if this process cannot see it.

    This asks the operating system, because its answer is the process id in the PID namespace of
    this process. The process id that a rank writes into shared memory may be of another namespace.
    """
    scratch = np.zeros(libc.SCRATCH_WORDS, dtype=np.int64)
    at = scratch.ctypes.data
    if not access.lock_is_held_kernel.call(at, fd, rank, at):
        return 0
    return int(scratch[libc.FLOCK_PID_WORD]) & 0xFFFFFFFF


def take_ownership(fd: int) -> bool:
    """Lock byte 0 of a new file; False if another rank 0 removes, or has removed, the file."""
    if not segments.lock(fd, 0) or not segments.lock(fd, REMOVAL_BYTE):
        return False
    owned = _has_name(fd)
    fcntl.lockf(fd, fcntl.LOCK_UN, 1, REMOVAL_BYTE)
    return owned


def remove_stale(config: ShmConfig) -> None:
    """Remove a segment of ours if its owner is dead; raise for any other segment.

    A living owner removes the name of its segment itself. If the owner is dead, only a process that
    has locked REMOVAL_BYTE may remove the name, so that no other process replaces the file between
    the check and the removal.
    """
    try:
        file = segments.open_named(config.name)
    except FileNotFoundError:
        return
    except PermissionError:
        raise describe_foreign(config.name) from None
    fd = file.number
    try:
        check_owner(config.name, fd)
        if not segments.lock(fd, REMOVAL_BYTE) or is_locked(fd, 0):
            raise InitializationFailed(
                "shm",
                f"segment {config.name} is in use by a running job; choose another "
                "COBRE_SHM_NAME for this one",
            )
        if not _is_ours(fd):
            raise InitializationFailed(
                "shm",
                f"{config.name} exists and is not a segment of cobre_comm; choose another "
                "COBRE_SHM_NAME",
            )
        if _has_name(fd):
            segments.unlink(config.name)
    finally:
        file.close()


def _has_name(fd: int) -> bool:
    """Whether a file still has its name; always true on macOS, which does not tell."""
    return sys.platform != "linux" or os.fstat(fd).st_nlink > 0


def _is_ours(fd: int) -> bool:
    """Whether a file begins like a segment, or is empty because its rank 0 died in CREATE."""
    if os.fstat(fd).st_size == 0:
        return True
    head = os.pread(fd, WORD_BYTES, CONTROL.offsets["published"])
    return int.from_bytes(head, "little") in (UNFINISHED, MAGIC)


def check_owner(name: str, fd: int) -> None:
    """Raise ``InitializationFailed`` unless a segment is this user's and closed to all others."""
    status = os.fstat(fd)
    if status.st_uid != os.geteuid():
        raise describe_foreign(name, status.st_uid)
    if status.st_mode & 0o077:
        raise InitializationFailed(
            "shm", f"segment {name} is open to others (mode {status.st_mode & 0o777:o})"
        )


def describe_foreign(name: str, uid: int | None = None) -> InitializationFailed:
    """Return the error for a name that another user has taken."""
    if uid is None:
        with contextlib.suppress(OSError):
            uid = (SHM_FOLDER / name.lstrip("/")).lstat().st_uid
    user = "another user" if uid is None else f"uid {uid}{_name_of(uid)}"
    return InitializationFailed(
        "shm",
        f"segment {name} belongs to {user}, not to uid {os.geteuid()}; choose another "
        "COBRE_SHM_NAME",
    )


def _name_of(uid: int) -> str:
    try:
        return f" ({pwd.getpwuid(uid).pw_name})"
    except KeyError:
        return ""
