"""Finds the ranks of this user on this machine, by the journals that their processes hold open.

Source: proc_pid_status(5) on State and NSpid.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

from cobre_kernels.collective.seeing.journal import CLOSED_WELL

from cobre_comm.journal.copied import Journal
from cobre_comm.journal.finding import journals_in
from cobre_comm.journal.progress import Reports, reports_of
from cobre_comm.journal.shown import shared_files

PROCESSES = pathlib.Path("/proc")


class Process(NamedTuple):
    """A process of this user."""

    pid: int  # in this PID namespace
    own_pid: int  # in its own PID namespace, for example that of a container
    state: str  # the kernel's words, such as ``S (sleeping)`` or ``T (stopped)``


class SeenRank(NamedTuple):
    """A rank as its journal shows it."""

    journal: Journal
    process: Process | None  # the process that writes the journal; None if it has ended
    file: tuple[int, int]  # device and inode of the memory of the journal
    # The numbers that the rank has reported since its journal began; None if it has reported none.
    reports: Reports | None = None


def find_ranks() -> list[SeenRank]:
    """Return every journal that a process of this user on this machine holds open."""
    holders: dict[tuple[int, int], list[Process]] = {}
    paths: dict[tuple[int, int], str] = {}
    for process in _own_processes():
        for path in shared_files(process.pid):
            with contextlib.suppress(OSError):  # the descriptor was closed meanwhile
                status = os.stat(path)  # noqa: PTH116
                file = status.st_dev, status.st_ino
                holders.setdefault(file, []).append(process)
                paths.setdefault(file, path)
    found = []
    for file, path in paths.items():
        for journal in journals_in(path):
            writers = [p for p in holders[file] if p.own_pid == journal.pid]
            found.append(SeenRank(journal, writers[0] if writers else None, file))
    return _with_reports(found)


def _with_reports(found: list[SeenRank]) -> list[SeenRank]:
    """Give the reports of each process to the rank in the oldest communicator of the process."""
    oldest: dict[int, int] = {}
    for index, seen in enumerate(found):
        if seen.process is not None and seen.journal.ended != CLOSED_WELL:
            other = oldest.setdefault(seen.process.pid, index)
            if seen.journal.communicator < found[other].journal.communicator:
                oldest[seen.process.pid] = index
    for pid, index in oldest.items():
        journal = found[index].journal
        reports = reports_of(pid, journal.pid)
        if reports is not None and (since := reports.since(journal.born_ns)).times_ns:
            found[index] = found[index]._replace(reports=since)
    return found


def _own_processes() -> Iterator[Process]:
    user = os.geteuid()
    for folder in PROCESSES.glob("[0-9]*"):
        with contextlib.suppress(OSError, KeyError):  # the process has ended meanwhile
            if folder.stat().st_uid == user:
                lines = (folder / "status").read_text().splitlines()
                said = dict(line.split(":", 1) for line in lines if ":" in line)
                pid = int(folder.name)
                own_pid = int(said.get("NSpid", folder.name).split()[-1])
                yield Process(pid, own_pid, said["State"].strip())
