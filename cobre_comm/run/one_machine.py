"""A job that has all its ranks on this machine: its attempts, one after another."""

from __future__ import annotations

import select
import signal
import time
from collections.abc import Sequence
from functools import partial

from cobre_comm.processes.job import Job
from cobre_comm.processes.mpi.mpiexec import Mpiexec
from cobre_comm.processes.restarts import AttemptEnding, Restarts, in_attempts
from cobre_comm.reports.graceful import FORWARDED
from cobre_comm.run.launcher_signals import SignalInbox
from cobre_comm.run.output.outlet import Outlet
from cobre_comm.run.terminal import Options, run_attempt
from cobre_comm.system.streams import STDERR

SAY_S = 5.0  # the time for a slow reader of stderr; meanwhile no signal ends the job


def run_job(
    job: Job,
    command: Sequence[str],
    options: Options,
    restarts: Restarts,
    mpiexec: Mpiexec | None = None,
) -> int:
    """Run the attempts of a job; return the exit status of the last one."""
    with SignalInbox([*FORWARDED, signal.SIGCHLD]) as inbox:

        def attempt(here: Job) -> AttemptEnding:
            return run_attempt(here, command, options, inbox, mpiexec)

        wait = partial(pause, inbox, ending=options.ending)
        return in_attempts(job, restarts, attempt, say, wait).status


def pause(inbox: SignalInbox, seconds: float, ending: frozenset[int]) -> int:
    """Wait; return the number of the first signal that asks to end, or 0 if none does."""
    until = time.monotonic() + seconds
    while (left_s := until - time.monotonic()) > 0:
        if select.select([inbox], [], [], left_s)[0]:
            came = [number for number in inbox.take() if number in ending]
            if came:
                return came[0]
    return 0


def say(line: str) -> None:
    """Write a line of the launcher to stderr."""
    outlet = Outlet(STDERR)  # stderr may have lost its reader
    outlet.put(f"cobre-comm: {line}\n".encode())
    outlet.write_all(SAY_S)
