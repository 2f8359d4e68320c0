"""One process compiles while others wait for it, in a folder that is the user's own.

The lock is for speed only. A process that finds no safe place for it, or that has waited for
:data:`PATIENCE_S`, compiles by itself.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from cobre_kernels.machine.compiling.cache_folder import cache_folder

PATIENCE_S = 300.0  # several times as long as a compilation; its process may have been stopped
_LOOK_S = 0.05


@contextlib.contextmanager
def one_compiles_first(
    name: str, environ: Mapping[str, str] = os.environ, patience_s: float = PATIENCE_S
) -> Iterator[bool]:
    """Let the first process that comes compile; the others go on together when it has.

    Parameters
    ----------
    name : str
        Name of the kernels; processes with the same name wait for each other.
    environ : mapping
        The environment, which says where the cache is.
    patience_s : float
        Longest wait of the other processes, in seconds.

    Yields
    ------
    bool
        Whether this process came first.
    """
    with contextlib.ExitStack() as stack:
        is_first = True
        with contextlib.suppress(OSError):  # there is no place for a lock
            lock = _open_lock(cache_folder(environ), f"{name}.lock")
            stack.callback(os.close, lock)
            is_first = _acquire(lock, patience_s)
        yield is_first


def _open_lock(folder: Path, name: str) -> int:
    """Return the descriptor of a file that only this user can open; ``OSError`` if none can be.

    Another user cannot put a link there, because folder and file are opened without following one,
    and their owner is checked. Nor can another user hold the lock, because the file is closed to
    others.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _make_ours(place, stat.S_IWGRP | stat.S_IWOTH)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK  # a fifo does not stop us
        lock = os.open(name, flags, 0o600, dir_fd=place)
    finally:
        os.close(place)
    try:
        _make_ours(lock, stat.S_IRWXG | stat.S_IRWXO)
    except OSError:
        os.close(lock)
        raise
    return lock


def _make_ours(descriptor: int, rights_of_others: int) -> None:
    """Take these rights from others; raise ``PermissionError`` if another user owns it."""
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid():
        raise PermissionError(errno.EACCES, "another user owns it")
    if status.st_mode & rights_of_others:
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode) & ~rights_of_others)


def _acquire(lock: int, patience_s: float) -> bool:
    """Return True with the lock, or False when its first holder has let go, or patience ends."""
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)  # the others do not stop each other
            break
        time.sleep(_LOOK_S)
    return False
