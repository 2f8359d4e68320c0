"""The end of a whole job by ``abort``: of the rank that calls it, and of ranks that learn of it.

The rank that calls ``abort`` closes its communicators as for an exception, ``Aborted``, so the
other ranks get the line of that exception. A rank that reads this line ends with the same code.
Some launchers end all ranks when one has failed. Under such a launcher the ranks that read the line
wait to be ended, so that the launcher first sees the end of the rank that called ``abort``.
"""

from __future__ import annotations

import os
import re
import time
from typing import NoReturn

from cobre_comm.reports import raised, report_pipe, seat
from cobre_comm.reports.launcher import launcher_name
from cobre_comm.system.streams import flush_output, write_error

LARGEST_CODE = 255  # of a process; 0 would say that all went well
ENDING = ("cobre-comm run", "launch", "mpiexec")  # launchers that end all ranks
LAUNCHER_S = 5.0  # for a launcher to end this rank: it takes one second on a quiet machine


class Aborted(Exception):
    """The exception by which an aborted job's ranks end: the job's exit code, who aborted it."""

    def __init__(self, code: int, rank: int) -> None:
        super().__init__(f"{code} of {rank}")
        self.code, self.rank = code, rank


_LINE = re.escape(raised.type_of(Aborted(0, 0))) + r": (\d+) of (\d+)"


def abort_in(line: str) -> Aborted | None:
    """Return the abort that a line reports, with the rank that has called it; else None."""
    told = re.fullmatch(_LINE, line)
    return Aborted(*map(int, told.groups())) if told else None


def rank_of(rank: int) -> int:
    """Return this process's rank in its job; if that is unknown, ``rank``, of a communicator."""
    known = seat.rank_here()
    return rank if known is None else known


def say(sentence: str) -> None:
    """Write a line to stderr, after all that the program has written."""
    flush_output()
    write_error(f"cobre-comm: {sentence}")


def tell_all(abort: Aborted) -> None:
    """Close all communicators of this process, so that the other ranks learn of the abort."""
    raised.end_all(abort)


def end_job(abort: Aborted) -> NoReturn:
    """Tell the other ranks, then end this process."""
    try:
        report_pipe.say_aborts()
        tell_all(abort)
    finally:
        os._exit(abort.code)


def follow(abort: Aborted) -> NoReturn:
    """End this process, because another rank has aborted the job."""
    try:
        tell_all(abort)  # ranks of other communicators learn of it too
        if launcher_name(os.environ) in ENDING:
            time.sleep(LAUNCHER_S)
        else:
            say(f"rank {abort.rank} has aborted the job with code {abort.code}")
    finally:
        os._exit(abort.code)
