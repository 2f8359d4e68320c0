"""Finding the journals of running ranks, among the files that this user's processes hold open.

A journal has no name (``backends/journals.py``): it lies in a memfd of its rank, or in the segment
of a node, which all ranks of the node hold open. ``/proc/PID/fd`` leads to both. Ranks are not
asked, so a rank that hangs or is stopped is seen like any other.

Sources: proc_pid_fd(5); proc_pid_status(5) on State and NSpid.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from cobre_kernels.shm import control
from cobre_kernels.shm.control import CONTROL

from cobre_comm.journal.finding import MEMORY_NAME
from cobre_comm.journal.reading import JOURNAL_BYTES, Journal, read, value

PROCESSES = pathlib.Path("/proc")
SEGMENTS = ("/dev/shm/", "/memfd:")  # where the link of a segment's descriptor leads
_NAMELESS = f"/memfd:{MEMORY_NAME}"


class Process(NamedTuple):
    """A process of this user.

    Attributes
    ----------
    pid : int
        As seen here.
    own_pid : int
        In its own PID namespace, where a container has one.
    state : str
        As the kernel says, such as ``S (sleeping)`` or ``T (stopped)``.
    """

    pid: int
    own_pid: int
    state: str


class SeenRank(NamedTuple):
    """A journal, and the process that writes it; None if that has ended."""

    journal: Journal
    process: Process | None
    file: tuple[int, int]


def find_ranks() -> list[SeenRank]:
    """Return all ranks of this user on this machine, of every communicator that is not closed."""
    holders: dict[tuple[int, int], list[Process]] = {}
    paths: dict[tuple[int, int], pathlib.Path] = {}
    for process in _own_processes():
        for path in _descriptors(process.pid):
            with contextlib.suppress(OSError):  # it was closed meanwhile
                if os.readlink(path).startswith(SEGMENTS):  # noqa: PTH115  # pathlib is slow
                    status = path.stat()
                    file = status.st_dev, status.st_ino
                    holders.setdefault(file, []).append(process)
                    paths.setdefault(file, path)
    found = []
    for file, path in paths.items():
        for journal in _journals(path):
            writers = [p for p in holders[file] if p.own_pid == journal.pid]
            found.append(SeenRank(journal, writers[0] if writers else None, file))
    return found


def _own_processes() -> Iterator[Process]:
    user = os.geteuid()
    for folder in PROCESSES.glob("[0-9]*"):
        with contextlib.suppress(OSError, KeyError):  # it has ended meanwhile
            if folder.stat().st_uid == user:
                lines = (folder / "status").read_text().splitlines()
                said = dict(line.split(":", 1) for line in lines if ":" in line)
                pid = int(folder.name)
                own_pid = int(said.get("NSpid", folder.name).split()[-1])
                yield Process(pid, own_pid, said["State"].strip())


def _descriptors(pid: int) -> list[pathlib.Path]:
    try:
        return list((PROCESSES / str(pid) / "fd").iterdir())
    except OSError:  # it has ended, or may not be looked into
        return []


def _journals(path: pathlib.Path) -> list[Journal]:
    """Return the journals in a file that may be any other file of shared memory."""
    try:
        with path.open("rb") as file:
            offsets = _offsets(path, file.fileno())
            if not offsets:
                return []
            with contextlib.closing(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as memory:
                words = np.frombuffer(memory, np.uint8)
                address, nbytes = words.ctypes.data, words.size
                whole = [offset for offset in offsets if offset + JOURNAL_BYTES <= nbytes]
                found = [read(address + offset) for offset in whole]
                del words  # it keeps the memory
    except (OSError, ValueError):  # it is empty, or has been closed meanwhile
        return []
    return [journal for journal in found if journal is not None]


def _offsets(path: pathlib.Path, fd: int) -> range:
    """Return where journals begin; nowhere in a file that is not ours, which is never mapped."""
    if os.readlink(path).startswith(_NAMELESS):  # noqa: PTH115
        return range(1)
    head = os.pread(fd, CONTROL.offsets["blocks"], 0)
    if len(head) < CONTROL.offsets["blocks"]:
        return range(0)
    words = np.frombuffer(head, np.int64)
    header = CONTROL.of(words)
    if (value(header.published), value(header.version)) != (control.MAGIC, control.LAYOUT_VERSION):
        return range(0)
    size = value(header.size)
    begin = int(control.journals_offset(size))
    return range(begin, begin + size * JOURNAL_BYTES, JOURNAL_BYTES)
