"""The log line about a rank that is late, but alive: one WARNING, written in Python.

A kernel that has waited for 10 s, 20 s, 40 s, ... starts a thread, which writes the line
(``cobre_kernels/collective/waiting/patience.py``). The program's logging decides where the line
goes; without logging it goes to stderr.
"""

from __future__ import annotations

import _thread
import functools

import numpy as np
from cobre_kernels.machine import libc
from cobre_kernels.machine.record import View
from numpy.typing import NDArray

from cobre_comm.errors import named
from cobre_comm.journal.telling import tell, tell_call
from cobre_comm.system.log import logger

TOLD_RANKS = 4  # the most late ranks of which a line tells the calls


def prepare_late_lines(comm: View, *kept: object) -> object:
    """Make the waits on a communicator report late ranks.

    Return the function that starts the thread of these lines; keep the function as long as kernels
    may run. The word ``late_ns`` of the record is the time until the first line. The line reads the
    memory of the objects in ``kept``, so these objects are kept alive until the line is written.
    """
    marks = np.zeros(comm.size, dtype=np.int64)
    write = functools.partial(_thread.start_new_thread, _write, (comm, marks, kept))
    comm.late = marks.ctypes.data
    comm.write_late_line = id(write)
    return write


def _write(comm: View, marks: NDArray[np.int64], kept: tuple[object, ...]) -> None:
    """Write the line, in a thread of its own, which may end later than the wait."""
    waited = {rank: ns for rank, ns in enumerate(marks.tolist()) if ns}
    if not waited:  # an earlier line was written late, when all ranks had arrived
        return
    late, is_one = sorted(waited), len(waited) == 1
    who = named(late)
    if min(waited.values()) < 0:  # marked so by _mark_node of nodes/waiting.py
        who += ", or another rank of its node," if is_one else ", or other ranks of their nodes,"
    who += " is late" if is_one else " are late"
    waited_s = max(map(abs, waited.values())) / libc.NS_PER_S
    call = tell_call(comm, comm.rank)
    where = f" in {call}" if call else ""
    told = "; ".join(tell(comm, rank) for rank in late[:TOLD_RANKS])
    logger.warning(
        "%s: rank %d has waited for %.3g s%s; %s; more: cobre-comm explain late",
        who, comm.rank, waited_s, where, told,
    )  # fmt: skip
