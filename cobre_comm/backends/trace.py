"""``COBRE_COMM_TRACE``: writes calls and phases of this rank to a file, and makes a Chrome trace.

While a communicator is open, its calls go to ``JOB.rank-R.N.calls``: R is the rank in the first
communicator of the process, and N is the number of the communicator. When a communicator is closed,
its calls are added to ``JOB.rank-R.json``. No two processes write to one file: if the name is
taken, the machine and the process are added to the name.
"""

from __future__ import annotations

import os
import re
import socket
import time
from pathlib import Path

import numpy as np
from cobre_kernels.collective.seeing.trace import (
    TRACE,
    TRACED_CALL,
    trace_call_kernel,
    trace_name_kernel,
    trace_phase_kernel,
    write_trace_kernel,
)
from cobre_kernels.machine.record import WORD_BYTES, View

from cobre_comm.backends.journals import job_name
from cobre_comm.errors import InitializationFailed
from cobre_comm.journal.chrome import header_bytes, move_to_trace
from cobre_comm.journal.copied import Copied, value
from cobre_comm.reports.trace_folder import VARIABLE, trace_folder
from cobre_comm.system.log import logger

ROWS = 4096  # a quarter of a mebibyte
CLOCK_LOOKS = 50


_rank: int | None = None  # the rank of this process in its first communicator
_names: dict[tuple[int, Path], str] = {}  # by process and folder, because a fork copies this


class Trace:
    """The trace of one communicator.

    The address of the trace is written into the record of the communicator, in which rank and size
    have to be set already. ``number`` counts the communicators of this process. ``OSError`` is
    raised if the files in ``folder`` cannot be written.
    """

    def __init__(self, comm: View, number: int, folder: Path) -> None:
        global _rank
        if _rank is None:
            _rank = comm.rank
        folder.mkdir(parents=True, exist_ok=True)
        self._pid = os.getpid()
        name = _name_in(folder, _rank)
        self._json = folder / f"{name}.json"
        self._calls = folder / f"{name}.{number}.calls"
        self._file = self._calls.open("xb", buffering=0)
        about = {
            "rank": _rank,
            "communicator": number,
            "size": comm.size,
            "own_rank": comm.rank,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "unix_ns": unix_offset_ns(),
        }
        self._file.write(header_bytes(about))
        self._words = TRACE.array()
        self._rows = np.zeros((ROWS + 1) * TRACED_CALL.size_bytes // WORD_BYTES, dtype=np.int64)
        self._record = record = TRACE.of(self._words)
        record.fd, record.capacity = self._file.fileno(), ROWS
        record.rows = self._rows.ctypes.data
        record.add_phase = trace_phase_kernel.address
        record.add_name = trace_name_kernel.address
        write_trace_kernel.call(self._words.ctypes.data)  # writes a row of the first moment
        self._comm = comm
        comm.trace = self._words.ctypes.data
        comm.trace_call = trace_call_kernel.address

    def finish(self) -> None:
        """Write the remaining rows, and add the file to the Chrome trace; idempotent."""
        if self._file.closed or os.getpid() != self._pid:
            return
        self._comm.trace_call = 0
        address, found = self._words.ctypes.data, Copied.at(int(self._comm.journal))
        if found is not None:
            trace_phase_kernel.call(address, value(found.view.phase), found.ticks)
        write_trace_kernel.call(address)
        self._file.close()
        lost = f"{self._record.lost} calls are missing, for which there was no room"
        remark = lost if self._record.lost else ""
        calls = found.journal().calls if found is not None else ()
        failed = calls[-1] if calls and calls[-1].left_ns is None else None
        why = move_to_trace(self._calls, self._json, remark, failed)
        remark = f"the trace stays in {self._calls}: {why}" if why else remark
        if remark:
            logger.warning("trace of rank %d: %s", self._comm.rank, remark)


def start_trace(comm: View, number: int, backend: str) -> Trace | None:
    """Return the trace of a new communicator; None if ``COBRE_COMM_TRACE`` is not set."""
    folder = trace_folder()
    if not folder:
        return None
    try:
        return Trace(comm, number, Path(folder))
    except OSError as error:
        raise InitializationFailed(
            backend,
            f"cannot write to {VARIABLE}={folder}: {error.strerror}; name a folder of yours",
        ) from None


def _name_in(folder: Path, rank: int) -> str:
    """Return the name of this process's files in a folder; no other process uses that name.

    Two jobs may have the same name, or no name, and a rank may start other processes.
    """
    key = os.getpid(), folder
    if key not in _names:
        job = re.sub(r"[^\w.-]", "_", job_name())
        name = f"{job}.rank-{rank}" if job else f"rank-{rank}"
        try:
            (folder / f"{name}.json").touch(exist_ok=False)
        except FileExistsError:  # in containers, host names and process ids may be equal
            name = f"{name}-{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}"
            (folder / f"{name}.json").touch(exist_ok=False)
        _names[key] = name
    return _names[key]


def unix_offset_ns() -> int:
    """Return the nanoseconds from the monotonic clock to Unix time.

    The system slews both clocks alike, so all processes of a machine get the same number. The error
    of this number is at most the time between the readings of the two clocks. Both clocks are read
    many times, and the two readings that were closest together count: they are some tens of
    nanoseconds apart.
    """
    best, offset = None, 0
    for _ in range(CLOCK_LOOKS):
        before = time.monotonic_ns()
        unix = time.time_ns()
        after = time.monotonic_ns()
        if best is None or after - before < best:
            best, offset = after - before, unix - (before + after) // 2
    return offset
