"""The end of a whole job by ``abort``: of the rank that calls it, and of ranks that learn of it.

The rank closes its communicators as it would for an exception, so that the line of that exception
reaches the other ranks with the news of its end. A rank that reads this line ends too, with the
same code. If the launcher ends all ranks once one has failed, that rank waits to be ended, so that
the launcher first sees the end of the rank that called ``abort``.
"""

from __future__ import annotations

import os
import time
from typing import NoReturn

from cobre_comm.reports import raised, report_pipe
from cobre_comm.reports.launcher import launcher_name
from cobre_comm.system.streams import flush_output, write_error

LARGEST_CODE = 255  # of a process; 0 would say that all went well
ENDING = ("cobre-comm run", "launch", "mpiexec")  # launchers that end all ranks
LAUNCHER_S = 5.0  # for a launcher to end this rank: it takes one second on a quiet machine


class Aborted(Exception):
    """The exception by which an aborted job's ranks end, with the exit code of the job."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


_LINE = raised.type_of(Aborted(0)) + ": "


def code_in(line: str) -> int:
    """Return the code of an abort, if this is the line of its exception; else 0."""
    code = line.removeprefix(_LINE)
    return int(code) if line.startswith(_LINE) and code.isdigit() else 0


def say(sentence: str) -> None:
    """Write a line to stderr, after all that the program has written."""
    flush_output()
    write_error(f"cobre-comm: {sentence}")


def tell_all(code: int) -> None:
    """Close all communicators of this process, so that the other ranks learn of the abort."""
    raised.end_all(Aborted(code))


def end_job(code: int) -> NoReturn:
    """Tell the other ranks, then end this process."""
    try:
        report_pipe.say_aborts()
        tell_all(code)
    finally:
        os._exit(code)


def follow(rank: int, code: int) -> NoReturn:
    """End this process, because another rank has aborted the job."""
    try:
        tell_all(code)  # ranks of other communicators learn of it too
        if launcher_name(os.environ) in ENDING:
            time.sleep(LAUNCHER_S)
        else:
            say(f"rank {rank} has aborted the job with code {code}")
    finally:
        os._exit(code)
