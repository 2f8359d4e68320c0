"""A file by which rank 0 gives the other ranks a secret, if their launcher has not.

The file has mode 0600, is complete when it appears under its name, and is removed when the ranks
have met. Only this user and root can read it. In a folder that others write to, something else may
stand in its place: a FIFO, a folder, a link, another user's file. No rank waits at such a thing or
reads it; the error says what it is. Rank 0 locks its file, so a killed rank 0 has left a file
without a lock. The ranks of its machine then wait for the next file, and the next rank 0 that
writes to the folder removes the old file. Some file systems do not show the locks of another
machine, so only files of the own machine are judged by their locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from cobre_comm.backends.tcp.process import this_machine
from cobre_comm.errors import InitializationFailed

PREFIX, SUFFIX = ".cobre.", ".token"
_LOOK_S = 0.02  # doubling, up to the second
_LONGEST_LOOK_S = 1.0
_LONGEST_WORDS = 4096  # bytes; rank 0 writes some 200
_KINDS = {
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFLNK: "a link",
    stat.S_IFSOCK: "a socket",
}
_INSTEAD = (
    "set COBRE_TCP_TOKEN_DIR to a folder that all ranks see, or give all of them a secret: "
    "export COBRE_TCP_TOKEN=$(openssl rand -hex 32)"
)


@contextlib.contextmanager
def told_by_file(folder: str, name: str, rank: int, words: str, timeout_s: float) -> Iterator[str]:
    """Write the secret as rank 0, or read it as another rank, while the ranks meet.

    Rank 0 writes ``words``, and removes the file in the end. Another rank waits for the file for
    ``timeout_s``; 0 is no limit. All ranks see ``folder``; empty is the working directory.

    ``InitializationFailed`` is raised if rank 0 cannot write the file. The same error is raised if
    the file does not appear, is another user's, or something else stands in its place.
    """
    path = Path(folder or ".").absolute() / name
    if rank > 0:
        yield _awaited(path, timeout_s)
        return
    _remove_left(path.parent)
    with contextlib.ExitStack() as stack:
        _write(path, f"{this_machine().hex()} {words}", stack)
        stack.callback(path.unlink, missing_ok=True)
        yield words


def _write(path: Path, words: str, stack: contextlib.ExitStack) -> None:
    """Write the file, so that it appears complete, and lock it until the stack ends."""
    draft = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
    try:
        try:
            descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            file = stack.enter_context(os.fdopen(descriptor, "w"))
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.write(words)
            file.flush()
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise InitializationFailed(
            "tcp",
            f"rank 0 cannot tell the others the job's secret by {path}: {error.strerror}"
            f"{_what_stands_at(path)}; {_INSTEAD}",
        ) from None


def _remove_left(folder: Path) -> None:
    """Remove the files of this user and machine that a killed rank 0 has left."""
    for path in folder.glob(f"{PREFIX}*{SUFFIX}"):
        with contextlib.suppress(OSError, InitializationFailed), _opened(path) as descriptor:
            _, may_hold = _read(path, descriptor)
            if may_hold:
                continue
            # Another rank 0 may have put its own there meanwhile, under the same name.
            aside = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
            path.rename(aside)
            if aside.stat().st_ino == os.fstat(descriptor).st_ino:
                aside.unlink()
            else:
                aside.rename(path)


def _awaited(path: Path, timeout_s: float) -> str:
    start, look_s = time.monotonic(), _LOOK_S
    while True:
        try:
            with _opened(path) as descriptor:
                words, may_hold = _read(path, descriptor)
                if may_hold:
                    return words
        except FileNotFoundError:
            pass
        except OSError as error:
            raise InitializationFailed(
                "tcp",
                f"cannot read the job's secret, {path}: {error.strerror}{_what_stands_at(path)}; "
                f"{_INSTEAD}",
            ) from None
        if 0 < timeout_s < time.monotonic() - start:
            raise InitializationFailed(
                "tcp",
                f"rank 0 has not written {path} within {timeout_s:g} s: it has not started, or "
                f"it does not see this folder; {_INSTEAD}",
            )
        time.sleep(look_s)
        look_s = min(2 * look_s, _LONGEST_LOOK_S)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open the file at a path, without following a link or waiting at a FIFO."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _what_stands_at(path: Path) -> str:
    """Return words on the kind and user of the file at a path; "" where there is none."""
    try:
        status = path.lstat()
    except OSError:
        return ""
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "a file")
    return f" (there is {kind} of user {status.st_uid}, and this is user {os.getuid()})"


def _read(path: Path, descriptor: int) -> tuple[str, bool]:
    """Return the words of rank 0, and False if rank 0 is known to have ended."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise InitializationFailed(
            "tcp",
            f"{path} is not the file of rank 0{_what_stands_at(path)}; remove it, or {_INSTEAD}",
        )
    if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise InitializationFailed(
            "tcp",
            f"{path} belongs to another user, or others can read it{_what_stands_at(path)}; "
            f"remove it, or {_INSTEAD}",
        )
    content = os.read(descriptor, _LONGEST_WORDS + 1)
    if len(content) > _LONGEST_WORDS:
        raise InitializationFailed(
            "tcp",
            f"{path} has {status.st_size} bytes, and no rank 0 has written so many; remove it, or "
            f"{_INSTEAD}",
        )
    machine, _, words = content.decode(errors="replace").partition(" ")
    if machine != this_machine().hex():
        return words, True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return words, True
    return words, False
