"""Start the ranks of a command, watch them to the end, return the exit status of the job."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass

from cobre_comm.cores import core_numbers
from cobre_comm.processes.descriptors import STDERR, STDOUT, allow, open_standard
from cobre_comm.processes.endgame import (
    ENDING_SIGNALS,
    FORWARDED_SIGNALS,
    GROUP_SIGNALS,
    NEVER,
    Endgame,
)
from cobre_comm.processes.environment import rank_environment
from cobre_comm.processes.guardian import Guardian, remove_names
from cobre_comm.processes.job import Job
from cobre_comm.processes.mpi.mpiexec import Mpiexec
from cobre_comm.processes.mpi.rank import MpiRank
from cobre_comm.processes.mpi.start import MpiStart
from cobre_comm.processes.rank import Rank, RankProcess
from cobre_comm.run.lines import Screen, Stream, rank_prefix
from cobre_comm.run.outlet import Outlet
from cobre_comm.run.relay import Relay, SignalInbox
from cobre_comm.run.report import Report

STRAGGLERS_S = 0.3  # what ranks started may end by itself after them
SPARE_DESCRIPTORS = 64
PIPES, PIPES_AND_LINKS = 2, 6  # descriptors for each rank


@dataclass(frozen=True)
class Options:
    """How ranks are started, apart from what they run.

    Parameters
    ----------
    bind : bool
        One core per rank.
    prefix : bool
        ``[rank]`` before each line; never in a job of one rank.
    grace_s : float
        How long ranks may take to end after a signal.
    """

    bind: bool = False
    prefix: bool = True
    grace_s: float = 5.0


def run(job: Job, command: Sequence[str], options: Options, mpiexec: Mpiexec | None = None) -> int:
    """Run ``command`` on every rank that ``job`` has here; call it from the main thread.

    Parameters
    ----------
    job : Job
        What is started.
    command : sequence of str
        What every rank runs.
    options : Options
        How.
    mpiexec : Mpiexec, optional
        What starts the ranks; None: this process does.

    Returns
    -------
    int
        0 if and only if all these ranks exited with 0; else the code of the first that failed, or
        128 and the number of the signal that ended it or the launcher.
    """
    open_standard()
    each = PIPES if mpiexec is None else PIPES_AND_LINKS
    allow(each * len(job.ranks) + SPARE_DESCRIPTORS)
    with SignalInbox([*FORWARDED_SIGNALS, signal.SIGCHLD]) as inbox:
        watch = _Watch(job, options, inbox)
        guardian = Guardian(job.shm_name)
        try:
            if mpiexec is None:
                watch.start(command, guardian)
            else:
                watch.start_by(mpiexec, command, guardian)
            watch.until_all_ended()
        finally:
            watch.leave_nothing()
            remove_names(job.shm_name)
            guardian.end()
        return watch.report()


class _Watch:
    """The ranks that a job has on this node, from start to report."""

    def __init__(self, job: Job, options: Options, inbox: SignalInbox) -> None:
        self._job = job
        self._options = options
        self._outlets = Outlet(STDOUT), Outlet(STDERR)
        self._screen = Screen()
        self._relay = Relay(self._outlets, inbox)
        self._endgame = Endgame(options.grace_s)
        self._ranks: Sequence[Rank] = []
        self._mpi: MpiStart | None = None
        self._killed: list[int] = []  # ranks that would not end

    def start(self, command: Sequence[str], guardian: Guardian) -> None:
        """Start all ranks, and have the guardian watch them."""
        cores = self._cores()
        self._ranks = ranks = []
        for rank in self._job.ranks:
            process = RankProcess(
                rank,
                command,
                rank_environment(self._job, rank, os.environ, bound=self._options.bind),
                core=cores.get(rank),
                streams=self._streams(rank),
            )
            ranks.append(process)
            guardian.watch(process.pid)
            for pipe, stream in process.pipes():
                self._relay.add(pipe, stream)

    def start_by(self, mpiexec: Mpiexec, command: Sequence[str], guardian: Guardian) -> None:
        """Have ``mpiexec`` start all ranks."""
        self._ranks = ranks = [MpiRank(rank, self._streams(rank)) for rank in self._job.ranks]
        for rank in ranks:
            for pipe, stream in rank.pipes():
                self._relay.add(pipe, stream)
        starter = MpiStart(
            ranks, command, cores=self._cores(), relay=self._relay, guardian=guardian
        )
        out, error = (Stream(outlet, b"[mpiexec] ", self._screen) for outlet in self._outlets)
        starter.start(mpiexec, (out, error))
        self._mpi = starter

    def _cores(self) -> dict[int, int]:
        """Return the core of each rank that is bound to one."""
        numbers = core_numbers() if self._options.bind else []
        return {r: numbers[i % len(numbers)] for i, r in enumerate(self._job.ranks) if numbers}

    def _streams(self, rank: int) -> tuple[Stream, Stream] | None:
        if self._job.size == 1:
            return None
        colour = not os.environ.get("NO_COLOR")
        out, error = (
            Stream(
                outlet,
                rank_prefix(rank, outlet, colour=colour) if self._options.prefix else b"",
                self._screen,
            )
            for outlet in self._outlets
        )
        return out, error

    def until_all_ended(self) -> None:
        """Relay output and signals, and end the job when a rank fails."""
        self._look()  # SIGCHLD may have come while ranks were started
        while any(process.end is None for process in self._ranks):
            for number in self._relay.step(self._endgame.next_at):
                self._handle(number)
            self._look_at_mpi()
            for number in self._endgame.due(time.monotonic()):
                self._send(number)

    def _handle(self, number: int) -> None:
        if number == signal.SIGCHLD:
            self._look()
            return
        if number in ENDING_SIGNALS:
            self._endgame.signalled(number, time.monotonic())
        if number in FORWARDED_SIGNALS:
            for process in self._ranks:
                process.signal(number, group=number in GROUP_SIGNALS)

    def _look(self) -> None:
        for process in self._ranks:
            if process.look() and process.end is not None and process.end.code != 0:
                self._endgame.rank_failed(process.end.at)
        if self._mpi is not None:
            self._mpi.look()

    def _look_at_mpi(self) -> None:
        if self._mpi is None:
            return
        if self._mpi.ended_at != NEVER:
            self._endgame.rank_failed(self._mpi.ended_at)
        if self._endgame.began != NEVER:
            self._mpi.job_ends()

    def _send(self, number: int) -> None:
        for process in self._ranks:
            if process.end is None and number == signal.SIGKILL:
                self._killed.append(process.rank)
            if process.end is None or number == signal.SIGKILL:
                process.signal(number, group=number == signal.SIGKILL)
        if self._mpi is not None and number == signal.SIGKILL:
            self._mpi.end_starting()

    def leave_nothing(self) -> None:
        """Write what ranks have written; end whatever they started; reap them."""
        processes = [*self._ranks]
        if self._mpi is not None:
            self._mpi.leave()
            processes.append(self._mpi.process)
        self._drain()
        for process in processes:
            process.signal(signal.SIGKILL, group=True)
        self._drain()
        self._relay.close()
        for process in processes:
            process.reap()
        while not self._relay.is_done and not self._impatient(NEVER):
            pass

    def _drain(self) -> None:
        """Read the pipes to their ends; a process that holds one open does not get for ever."""
        until = time.monotonic() + STRAGGLERS_S
        while self._relay.is_reading and time.monotonic() < until:
            if self._impatient(until):
                break
            if self._relay.is_held_up:  # that is up to our own reader
                until = time.monotonic() + STRAGGLERS_S

    def _impatient(self, until: float) -> bool:
        """Relay what comes; return whether a signal asked to end at once."""
        return any(number in ENDING_SIGNALS for number in self._relay.step(until))

    def report(self) -> int:
        """Say what went wrong, last of all; return the exit status."""
        report = Report(self._ranks, self._mpi, self._outlets[1])
        if self._endgame.cause:
            return report.by_signal(self._endgame.cause, self._killed, self._options.grace_s)
        return report.by_ranks(self._endgame)
