"""Files that are replaced as a whole: a reader sees either the old file or the new one.

What is written goes to a draft beside the file. When the draft is on the disk, it takes the place
of the file. So after a full disk or a kill, the old file is still there.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

Writer = Callable[[Path], None]
"""Writes an output to a path, by `replacing`."""


def target_of(path: Path) -> Path:
    """Return the file to which `path` leads, through links; the file need not exist."""
    return Path(os.path.realpath(path))


def draft_of(path: Path) -> Path:
    """Return the path of the draft that is written before it replaces `path`."""
    target = target_of(path)
    return target.with_name(target.name + ".part")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write to, which replaces `path` when the block ends without an error.

    If `path` is a link, the link stays, and the file to which it leads is replaced. A file keeps
    its mode, and its owner if this is allowed. What is no regular file (a pipe, /dev/null) is
    written directly.

    Raises
    ------
    OSError
        If the file cannot be written; the old file is still there.
    """
    target, draft = target_of(path), draft_of(path)
    before = target.stat() if target.exists() else None
    if before is not None and not stat.S_ISREG(before.st_mode):
        with path.open("wb") as file:
            yield file
        return
    try:
        with draft.open("wb") as file:
            if before is not None:
                _keep_owner_and_mode(file.fileno(), before)
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    _sync_folder(target.parent)


def _keep_owner_and_mode(descriptor: int, before: os.stat_result) -> None:
    """Give an open draft the owner and the mode that the file had."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return
    with contextlib.suppress(PermissionError):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def _sync_folder(folder: Path) -> None:
    """Make the renaming of a file survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Replace `path` by a file with this text."""
    with replacing(path) as file:
        file.write(text.encode())


def unwritable(program: str, paths: Mapping[str, Path | None]) -> list[str]:
    """Return a sentence for each output file that cannot be written; options name the files."""
    return [
        f"{program}: error: cannot write {option} {path}; name a file in a folder that exists "
        f"and can be written to"
        for option, path in paths.items()
        if path is not None and not _is_writable(target_of(path))
    ]


def _is_writable(target: Path) -> bool:
    if target.is_dir() or not target.parent.is_dir():
        return False
    if target.exists() and not target.is_file():
        return os.access(target, os.W_OK)
    return os.access(target.parent, os.W_OK | os.X_OK)


def write_outputs(writers: Mapping[str, tuple[Path | None, Writer]]) -> list[str]:
    """Write every output that has a path; return a sentence for each one that was not written."""
    problems = []
    for option, (path, write) in writers.items():
        if path is None:
            continue
        try:
            write(path)
        except OSError as error:
            problems.append(f"cannot write {option} {path}: {error.strerror or error}; make room")
    return problems
