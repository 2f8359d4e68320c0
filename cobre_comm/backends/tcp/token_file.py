"""What rank 0 tells the others where their launcher hands them no secret: a file holds it.

The file has mode 0600, is complete when it appears under its name, and goes when the ranks have
met. Only this user and root can read it. Rank 0 locks it: one that a killed rank 0 has left has no
lock. The ranks of its machine wait for the next one, and the next rank 0 that writes a file to that
folder removes it. Some file systems do not show the lock of another machine, so nobody looks for
that.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from cobre_comm.backends.tcp.process import this_machine
from cobre_comm.errors import InitializationFailed

PREFIX, SUFFIX = ".cobre.", ".token"
_LOOK_S = 0.02  # doubling, up to the second
_LONGEST_LOOK_S = 1.0
_INSTEAD = (
    "set COBRE_TCP_TOKEN_DIR to a folder that all ranks see, or give all of them a secret: "
    "export COBRE_TCP_TOKEN=$(openssl rand -hex 32)"
)


@contextlib.contextmanager
def told_by_file(folder: str, name: str, rank: int, words: str, timeout_s: float) -> Iterator[str]:
    """Give the words of rank 0 to one of the ranks, while they meet.

    Parameters
    ----------
    folder : str
        Which all ranks see; empty: the working directory.
    name : str
        Of the file.
    rank : int
        Rank 0 makes the file, and removes it in the end.
    words : str
        What it holds if this is rank 0.
    timeout_s : float
        How long another rank waits for it; 0: without a limit.

    Raises
    ------
    InitializationFailed
        If rank 0 cannot write the file, if it does not appear, or if it is another user's.
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
    """Have the file appear, complete and locked until the stack ends."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
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
            f"rank 0 cannot tell the others the job's secret by {path}: {error.strerror}; "
            f"{_INSTEAD}",
        ) from None


def _remove_left(folder: Path) -> None:
    """Remove the files that killed ranks 0 of this user and machine have left in a folder."""
    for path in folder.glob(f"{PREFIX}*{SUFFIX}"):
        with contextlib.suppress(OSError, InitializationFailed), path.open() as file:
            _, may_hold = _read(path, file)
            if may_hold:
                continue
            # Another rank 0 may have put its own there meanwhile, under the same name.
            aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
            path.rename(aside)
            if aside.stat().st_ino == os.fstat(file.fileno()).st_ino:
                aside.unlink()
            else:
                aside.rename(path)


def _awaited(path: Path, timeout_s: float) -> str:
    start, look_s = time.monotonic(), _LOOK_S
    while True:
        try:
            with path.open() as file:
                words, may_hold = _read(path, file)
                if may_hold:
                    return words
        except FileNotFoundError:
            pass
        except OSError as error:
            raise InitializationFailed(
                "tcp", f"cannot read the job's secret, {path}: {error.strerror}; {_INSTEAD}"
            ) from None
        if 0 < timeout_s < time.monotonic() - start:
            raise InitializationFailed(
                "tcp",
                f"rank 0 has not written {path} within {timeout_s:g} s: it has not started, or "
                f"it does not see this folder; {_INSTEAD}",
            )
        time.sleep(look_s)
        look_s = min(2 * look_s, _LONGEST_LOOK_S)


def _read(path: Path, file: IO[str]) -> tuple[str, bool]:
    """Return the words of rank 0, and whether it holds the file, or nobody can tell."""
    status = os.fstat(file.fileno())
    if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise InitializationFailed(
            "tcp", f"{path} belongs to another user, or others can read it; remove it; {_INSTEAD}"
        )
    machine, _, words = file.read().partition(" ")
    if machine != this_machine().hex():
        return words, True
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return words, True
    return words, False
