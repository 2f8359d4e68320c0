"""The owner of a segment: which user it is, and whether its rank 0 still lives."""

from __future__ import annotations

import os
import time

import numpy as np
from cobre_kernels.machine import access, libc
from cobre_kernels.machine.record import WORD_BYTES
from cobre_kernels.shm.control import CONTROL, MAGIC, UNFINISHED

from cobre_comm.backends.shm import segment as segments
from cobre_comm.config import ShmConfig
from cobre_comm.errors import InitializationFailed
from cobre_comm.running_time import running_s

STALE_AFTER_S = 0.2  # a creator locks its byte within microseconds
LOOK_S = 0.01


def is_locked(fd: int, rank: int) -> bool:
    """Whether a live process, not this one, has attached as ``rank``."""
    scratch = np.zeros(libc.SCRATCH_WORDS, dtype=np.int64)
    at = scratch.ctypes.data
    return bool(access.lock_is_held_kernel.call(at, access.Lock(fd, rank, at)))


def remove_stale(config: ShmConfig) -> None:
    """Remove a segment of ours whose owner is dead; raise for any other segment."""
    try:
        fd = segments.open_existing(config.name)
    except FileNotFoundError:
        return
    except PermissionError:
        raise InitializationFailed(
            "shm", f"segment {config.name} belongs to another user; choose another COBRE_SHM_NAME"
        ) from None
    try:
        check_owner(config, fd)
        deadline = running_s() + STALE_AFTER_S
        while running_s() < deadline:
            if is_locked(fd, 0):
                raise InitializationFailed(
                    "shm",
                    f"segment {config.name} is in use by a running job; choose another "
                    "COBRE_SHM_NAME for this one",
                )
            time.sleep(LOOK_S)
        if not _is_ours(fd):
            raise InitializationFailed(
                "shm",
                f"{config.name} exists and is not a segment of cobre_comm; choose another "
                "COBRE_SHM_NAME",
            )
    finally:
        os.close(fd)
    segments.unlink(config.name)


def _is_ours(fd: int) -> bool:
    """Whether it begins as a segment does, or is empty: then its creator ended within CREATE."""
    if os.fstat(fd).st_size == 0:
        return True
    head = os.pread(fd, WORD_BYTES, CONTROL.offsets["published"])
    return int.from_bytes(head, "little") in (UNFINISHED, MAGIC)


def check_owner(config: ShmConfig, fd: int) -> None:
    """Raise ``InitializationFailed`` unless a segment is this user's and closed to all others."""
    status = os.fstat(fd)
    if status.st_uid != os.geteuid():
        raise InitializationFailed(
            "shm",
            f"segment {config.name} belongs to uid {status.st_uid}, not to {os.geteuid()}; "
            "choose another COBRE_SHM_NAME",
        )
    if status.st_mode & 0o077:
        raise InitializationFailed(
            "shm", f"segment {config.name} is open to others (mode {status.st_mode & 0o777:o})"
        )
