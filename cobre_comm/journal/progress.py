"""The numbers that a rank reports while it runs: notes them, and reads them for ``status``.

The numbers are in memory that the process shows (``shown.py``).
"""

from __future__ import annotations

import contextlib
import math
import numbers
import os
import struct
import time
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from cobre_kernels.collective.seeing.journal import NAME_BYTES
from cobre_kernels.collective.seeing.progress import (
    PROGRESS,
    PROGRESS_MAGIC,
    REPORT,
    REPORTS,
    SERIES_ROWS,
)
from cobre_kernels.machine.record import WORD_BYTES
from numpy.typing import NDArray

from cobre_comm.journal.copied import letters_at, words_of
from cobre_comm.journal.shown import load, show, shown, store
from cobre_comm.reports.raised import cut
from cobre_comm.system.in_turn import InTurn

MEMORY_NAME = "cobre_comm.progress"  # the name under which /proc/PID/fd shows the memory
_REPORT_WORDS = REPORT.size_bytes // WORD_BYTES

_notes: dict[int, InTurn] = {}  # by process id, so a forked child has notes of its own


class Reports(NamedTuple):
    """What a process has reported, the oldest first."""

    names: tuple[str, ...]  # the names of the numbers
    times_ns: tuple[int, ...]  # when each report was noted, on the machine's monotonic clock
    # The numbers of each report, in the order of the names; NaN if the report lacks a name.
    values: tuple[tuple[float, ...], ...]

    def since(self, time_ns: int) -> Reports:
        """Return the reports that were noted at that time or later."""
        first = sum(each < time_ns for each in self.times_ns)
        return Reports(self.names, self.times_ns[first:], self.values[first:])


def note(payload: object) -> None:
    """Note the numbers in a report, if the report is a mapping with numbers."""
    if found := _numbers_in(payload):
        pid = os.getpid()
        if pid not in _notes:
            _notes.setdefault(pid, InTurn(Notes().add))  # the notes of the first thread stay
        _notes[pid](found)


def _numbers_in(payload: object) -> dict[bytes, float]:
    """Return the numbers of a report, by the letters of their names."""
    found: dict[bytes, float] = {}
    for name, value in payload.items() if isinstance(payload, Mapping) else ():
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if is_number and isinstance(name, str) and name.strip() and name.isprintable():
            with contextlib.suppress(OverflowError):  # an integer beyond the largest float64
                found[cut(name, NAME_BYTES)] = float(value)
    return found


class Notes:
    """The memory in which a process notes its reports, and the names that it has used."""

    def __init__(self) -> None:
        self._names: list[bytes] = []
        self._count = 0
        self._file, self._memory = show(MEMORY_NAME, PROGRESS.size_bytes)
        self._view = PROGRESS.of(self._memory)
        store(self._view.pid, os.getpid())
        # Pairs with the load in read_reports, which comes first there.
        store(self._view.magic, PROGRESS_MAGIC)

    def add(self, found: Mapping[bytes, float]) -> None:
        """Note a report. The releases pair with the loads in read_reports."""
        for letters in found:
            if letters not in self._names and len(self._names) < SERIES_ROWS:
                self._name(letters)
        self._count += 1
        store(self._view.begun, self._count)
        row = self._view.reports[self._count % REPORTS]
        store(row.noted_ns, time.monotonic_ns())
        for index in range(SERIES_ROWS):
            is_named = index < len(self._names)
            value = found.get(self._names[index], math.nan) if is_named else math.nan
            store(row.values[index].bits, struct.unpack("q", struct.pack("d", value))[0])
        store(row.number, self._count)

    def _name(self, letters: bytes) -> None:
        """Give the next series its name. The releases pair with the loads in read_reports."""
        row = self._view.series[len(self._names)]
        for index, word in enumerate(words_of(letters, NAME_BYTES).tolist()):
            store(row.name[index].value, word)
        self._names.append(letters)
        store(self._view.named, len(self._names))


def read_reports(memory: NDArray[np.int64]) -> Reports | None:
    """Read the reports in some memory, which may change meanwhile; None if it has no reports."""
    view = PROGRESS.of(memory)
    if load(view.magic) != PROGRESS_MAGIC:
        return None
    last, found = load(view.begun), []
    for number in range(max(last - REPORTS, 0) + 1, last + 1):
        row = view.reports[number % REPORTS]
        words = [load(row.address + index * WORD_BYTES) for index in range(_REPORT_WORDS)]
        is_whole = words[0] == number and load(view.begun) < number + REPORTS
        if is_whole:
            found.append(words)
    # Names are read after the reports: by then each number has its name, which never changes.
    named = load(view.named)
    names = [letters_at(view.series[index].name.address, NAME_BYTES) for index in range(named)]
    values = [
        struct.unpack(f"{named}d", struct.pack(f"{named}q", *w[2 : 2 + named])) for w in found
    ]
    return Reports(tuple(names), tuple(words[1] for words in found), tuple(values))


def reports_of(pid: int, own_pid: int) -> Reports | None:
    """Return what a process has reported; None if it has reported no numbers.

    ``pid`` is the process id in this PID namespace, and ``own_pid`` the id in the namespace of the
    process itself.
    """
    for memory in shown(pid, MEMORY_NAME, PROGRESS.size_bytes):
        if load(PROGRESS.of(memory).pid) == own_pid:
            return read_reports(memory)
    return None
