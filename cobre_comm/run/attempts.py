"""The attempts of a job on one machine: the first one, and one more after each loss of a rank."""

from __future__ import annotations

import select
import signal
import time
from collections.abc import Sequence

from cobre_comm.common.streams import STDERR
from cobre_comm.errors import signal_name
from cobre_comm.processes.job import Job
from cobre_comm.processes.mpi.mpiexec import Mpiexec
from cobre_comm.processes.port import with_rendezvous
from cobre_comm.processes.restarts import Restarts, given_up
from cobre_comm.run.output.outlet import Outlet
from cobre_comm.run.run import Options, run
from cobre_comm.run.signals import FORWARDED_SIGNALS, SignalInbox


def run_job(
    job: Job,
    command: Sequence[str],
    options: Options,
    restarts: Restarts,
    mpiexec: Mpiexec | None = None,
) -> int:
    """Run the attempts of a job on one machine; return the exit status of the last one."""
    with SignalInbox([*FORWARDED_SIGNALS, signal.SIGCHLD]) as inbox:
        while True:
            with with_rendezvous(job) as here:
                outcome = run(here, command, options, inbox, mpiexec)
            if not (outcome.has_failed and restarts.most):
                return outcome.status
            why = restarts.why_not(outcome)
            if why:
                say(given_up(why))
                return outcome.status
            job = job.again(restarts.size(job.size, outcome.killed))
            say(restarts.plan(job.size))
            number = pause(inbox, restarts.pause_s, options.ending)
            if number:
                say(f"ended by {signal_name(number)}")
                return 128 + number


def pause(inbox: SignalInbox, seconds: float, ending: frozenset[int]) -> int:
    """Wait; return the number of the first signal that asks to end, or 0."""
    until = time.monotonic() + seconds
    while (left_s := until - time.monotonic()) > 0:
        if select.select([inbox], [], [], left_s)[0]:
            came = [number for number in inbox.take() if number in ending]
            if came:
                return came[0]
    return 0


def say(line: str) -> None:
    """Write a line of the launcher to stderr."""
    outlet = Outlet(STDERR)  # which may have lost its reader
    outlet.put(f"cobre-comm: {line}\n".encode())
    outlet.write_all()
