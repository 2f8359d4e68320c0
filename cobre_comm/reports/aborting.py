"""The end of a whole job by ``abort``: on the rank that calls it, and on ranks that learn of it.

The rank that calls ``abort`` closes its communicators as it would after an exception, ``Aborted``.
So the other ranks get a line that reports this exception. A rank that reads the line ends with the
same code. Some launchers end all ranks when one rank has failed. Under such a launcher the ranks
that read the line wait until the launcher ends them, so that the launcher first sees the end of the
rank that called ``abort``.
"""

from __future__ import annotations

import os
import re
import time
from typing import NoReturn

from cobre_comm.reports import raised, report_pipe, seat
from cobre_comm.reports.launcher import launcher_name
from cobre_comm.system.streams import flush_output, write_error

LARGEST_CODE = 255  # the largest exit code of a process; 0 would mean success
ENDING = ("cobre-comm run", "launch", "mpiexec")  # launchers that end all ranks when one has failed
LAUNCHER_S = 5.0  # the time for a launcher to end this rank; on a quiet machine it takes one second


class Aborted(Exception):
    """The exception that ends ranks of an aborted job; it has the exit code, and who aborted."""

    def __init__(self, code: int, rank: int) -> None:
        super().__init__(f"{code} of {rank}")
        self.code, self.rank = code, rank


_LINE = re.escape(raised.type_of(Aborted(0, 0))) + r": (\d+) of (\d+)"


def abort_in(line: str) -> Aborted | None:
    """Return the abort that a line reports; None if the line reports something else."""
    told = re.fullmatch(_LINE, line)
    return Aborted(*map(int, told.groups())) if told else None


def rank_of(rank: int) -> int:
    """Return this process's rank in its job; if unknown, ``rank``, the rank in a communicator."""
    known = seat.rank_here()
    return rank if known is None else known


def say(sentence: str) -> None:
    """Write a line to stderr, after all that the program has written."""
    flush_output()
    write_error(f"cobre-comm: {sentence}")


def end_job(abort: Aborted) -> NoReturn:
    """Tell the other ranks, then end this process."""
    try:
        report_pipe.say_aborts()
        raised.end_all(abort)  # closes all communicators, so that the other ranks learn of it
    finally:
        os._exit(abort.code)


def follow(abort: Aborted) -> NoReturn:
    """End this process, because another rank has aborted the job."""
    try:
        raised.end_all(abort)  # so the ranks of all other communicators learn of it too
        if launcher_name(os.environ) in ENDING:
            time.sleep(LAUNCHER_S)
        else:
            say(f"rank {abort.rank} has aborted the job with code {abort.code}")
    finally:
        os._exit(abort.code)
