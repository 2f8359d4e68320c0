"""Start the ranks of a command, watch them to the end, return the exit status of the job."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass

from cobre_comm.cores import core_numbers
from cobre_comm.processes.endings import STARTER
from cobre_comm.processes.environment import rank_environment
from cobre_comm.processes.escalation import Escalation
from cobre_comm.processes.group import Group
from cobre_comm.processes.job import Job
from cobre_comm.processes.loop import NEVER
from cobre_comm.processes.mpi.mpiexec import Mpiexec
from cobre_comm.processes.mpi.rank import MpiRank
from cobre_comm.processes.mpi.start import MpiStart
from cobre_comm.processes.mpi.variables import of_batch_job
from cobre_comm.processes.rank import RankProcess, Standard
from cobre_comm.run.descriptors import STDERR, STDOUT, allow, open_standard
from cobre_comm.run.lines import Screen, Stream, rank_prefix
from cobre_comm.run.outlet import Outlet
from cobre_comm.run.relay import Relay
from cobre_comm.run.report import FinalReport
from cobre_comm.run.signals import (
    ENDING_SIGNALS,
    FORWARDED_SIGNALS,
    GROUP_SIGNALS,
    SignalInbox,
)

STRAGGLERS_S = 0.3  # what ranks started may end by itself after them
WITNESS_S = 0.05  # for a sender of a signal to reach all processes, if it sends to all
SPARE_DESCRIPTORS = 64
EACH, EACH_BY_SHIM = 3, 8  # descriptors for each rank


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
    each = EACH if mpiexec is None else EACH_BY_SHIM
    allow(each * len(job.ranks) + SPARE_DESCRIPTORS)
    with SignalInbox([*FORWARDED_SIGNALS, signal.SIGCHLD]) as inbox:
        watch = _Watch(job, options, inbox)
        try:
            if mpiexec is None:
                watch.start(command)
            else:
                watch.start_by(mpiexec, command)
            watch.until_all_ended()
        finally:
            watch.leave_nothing()
        return watch.report()


class _Watch:
    """The ranks that a job has on this node, from start to report."""

    def __init__(self, job: Job, options: Options, inbox: SignalInbox) -> None:
        self._job = job
        self._options = options
        self._outlets = Outlet(STDOUT), Outlet(STDERR)
        self._screen = Screen()
        self._escalation = Escalation(options.grace_s)
        self._group = Group(job.shm_name, self._escalation)
        self._relay = Relay(self._outlets, self._group.loop)
        self._inbox = inbox
        self._signals: list[int] = []  # that came and are not handled yet
        self._to_forward: list[tuple[float, int]] = []  # when, and which
        self._group.loop.serve(inbox.fileno(), self._take_signals)
        self._errors: dict[int, Stream] = {}
        self._mpi: MpiStart | None = None
        self._mpi_streams: list[Stream] = []

    def start(self, command: Sequence[str]) -> None:
        """Start all ranks, and have the guardian watch them."""
        cores = self._cores()
        for rank in self._job.ranks:
            environment = rank_environment(self._job, rank, os.environ, bound=self._options.bind)
            standard = self._standard(rank)
            self._group.add(RankProcess(rank, command, environment, standard, core=cores.get(rank)))

    def start_by(self, mpiexec: Mpiexec, command: Sequence[str]) -> None:
        """Have ``mpiexec`` start all ranks."""
        cores = self._cores()
        batch = of_batch_job(os.environ)
        ranks = [
            MpiRank(rank, self._standard(rank), batch, cores.get(rank)) for rank in self._job.ranks
        ]
        for rank in ranks:
            self._group.add(rank)
        self._mpi = MpiStart(ranks, command, self._group.loop, self._group.guardian.watch)
        self._mpi_streams = [
            Stream(outlet, b"[mpiexec] ", self._screen) for outlet in self._outlets
        ]
        self._mpi.start(mpiexec, self._pipes(self._mpi_streams))

    def _cores(self) -> dict[int, int]:
        """Return the core of each rank that is bound to one."""
        numbers = core_numbers() if self._options.bind else []
        return {r: numbers[i % len(numbers)] for i, r in enumerate(self._job.ranks) if numbers}

    def _standard(self, rank: int) -> Standard:
        """Return what a rank reads and writes; alone, it writes where the launcher does."""
        if self._job.size == 1:
            return Standard()
        colour = not os.environ.get("NO_COLOR")
        streams = [
            Stream(
                outlet,
                rank_prefix(rank, outlet, colour=colour) if self._options.prefix else b"",
                self._screen,
            )
            for outlet in self._outlets
        ]
        self._errors[rank] = streams[1]
        standard = self._pipes(streams)
        if rank == 0:
            os.close(standard.stdin)
            return standard._replace(stdin=0)
        return standard

    def _pipes(self, streams: Sequence[Stream]) -> Standard:
        """Return no input, and pipes that the relay reads into these streams."""
        writers = []
        for stream in streams:
            reader, writer = os.pipe()
            self._relay.add(reader, stream)
            writers.append(writer)
        stdout, stderr = writers
        return Standard(os.open(os.devnull, os.O_RDONLY), stdout, stderr)

    def until_all_ended(self) -> None:
        """Relay output and signals, and end the job when a rank fails."""
        self._look()  # SIGCHLD may have come while ranks were started
        while self._group.running:
            self._relay.step(min([self._escalation.next_at, *(at for at, _ in self._to_forward)]))
            for number in self._taken_signals():
                self._handle(number)
            self._forward(time.monotonic())
            self._look_at_mpi()
            for number in self._escalation.due(time.monotonic()):
                self._group.send(number)
                if self._mpi is not None and number == signal.SIGKILL:
                    self._mpi.end_starting()

    def _take_signals(self) -> None:
        self._signals += self._inbox.take()

    def _taken_signals(self) -> list[int]:
        signals, self._signals = self._signals, []
        return signals

    def _handle(self, number: int) -> None:
        if number == signal.SIGCHLD:
            self._look()
            return
        if number in ENDING_SIGNALS:
            self._escalation.signalled(number, time.monotonic())
        self._to_forward.append((time.monotonic() + WITNESS_S, number))

    def _forward(self, now: float) -> None:
        """Forward the signals that are due, unless the ranks have got them from the sender."""
        due = [number for at, number in self._to_forward if at <= now]
        del self._to_forward[: len(due)]
        for number in due:
            if not self._group.guardian.has_seen(number):
                for rank in self._group.ranks:
                    rank.signal(number, group=number in GROUP_SIGNALS)

    def _look(self) -> None:
        if self._mpi is not None:
            self._mpi.look()
        self._group.look()

    def _look_at_mpi(self) -> None:
        if self._mpi is None:
            return
        if self._mpi.ending is not None:
            self._group.starter_ended(self._mpi.ending)
        if self._escalation.began != NEVER:
            self._mpi.find_leftovers()
            for stream in self._mpi_streams:  # it only tells of the end of shims
                stream.is_muted = True

    def leave_nothing(self) -> None:
        """Write what ranks have written; end the processes that they started; reap them."""
        processes = [*self._group.ranks]
        if self._mpi is not None:
            self._mpi.leave(self._impatient)
            processes.append(self._mpi.process)
        self._drain()
        for process in processes:
            process.signal(signal.SIGKILL, group=True)
        self._drain()
        self._relay.close()
        if self._mpi is not None:
            self._mpi.process.reap()
        self._group.close()
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
        self._relay.step(until)
        return any(number in ENDING_SIGNALS for number in self._taken_signals())

    def report(self) -> int:
        """Say what went wrong, last of all; return the exit status."""
        report = FinalReport(
            self._group, None if self._mpi is None else self._mpi.ending, self._outlets[1]
        )
        if self._escalation.cause:
            return report.by_signal(self._options.grace_s)
        tails = {rank: stream.tail for rank, stream in self._errors.items()}
        if self._mpi is not None:
            tails[STARTER] = self._mpi_streams[1].tail
        return report.by_ranks(tails)
