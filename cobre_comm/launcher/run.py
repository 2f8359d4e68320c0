"""Start the ranks of a command, watch them to the end, return the exit status of the job."""

from __future__ import annotations

import errno
import os
import resource
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cobre_comm.cores import core_numbers
from cobre_comm.errors import signal_name
from cobre_comm.launcher import verdict
from cobre_comm.launcher.endgame import (
    ENDING_SIGNALS,
    FORWARDED_SIGNALS,
    GROUP_SIGNALS,
    NEVER,
    Endgame,
)
from cobre_comm.launcher.environment import rank_environment
from cobre_comm.launcher.guardian import Guardian, remove_names
from cobre_comm.launcher.job import Job
from cobre_comm.launcher.lines import Screen, Stream, rank_prefix
from cobre_comm.launcher.outlet import Outlet
from cobre_comm.launcher.rank_process import RankProcess
from cobre_comm.launcher.relay import Relay, SignalInbox

STDIN, STDOUT, STDERR = 0, 1, 2
STRAGGLERS_S = 0.3  # what ranks started may end by itself after them
SPARE_DESCRIPTORS = 64


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


def run(job: Job, command: Sequence[str], options: Options) -> int:
    """Run ``command`` on every rank that ``job`` has here; call it from the main thread.

    Returns
    -------
    int
        0 if and only if all these ranks exited with 0; else the code of the first that failed, or
        128 and the number of the signal that ended it or the launcher.
    """
    _open_standard_descriptors()
    _allow_descriptors(2 * len(job.ranks) + SPARE_DESCRIPTORS)
    with SignalInbox([*FORWARDED_SIGNALS, signal.SIGCHLD]) as inbox:
        watch = _Watch(job, options, inbox)
        guardian = Guardian(job.shm_name)
        try:
            watch.start(command, guardian)
            watch.until_all_ended()
        finally:
            watch.leave_nothing()
            remove_names(job.shm_name)
            guardian.end()
        return watch.report()


def _allow_descriptors(needed: int) -> None:
    """Raise this process's limit of open files where that is needed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= needed or soft == resource.RLIM_INFINITY:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise OSError(errno.EMFILE, f"{needed} open files are needed, `ulimit -n` allows {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _open_standard_descriptors() -> None:
    """Put /dev/null where ``<&-`` or ``>&-`` left a hole that a pipe of ours would fill."""
    for descriptor in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


class _Watch:
    """The ranks that a job has on this node, from start to report."""

    def __init__(self, job: Job, options: Options, inbox: SignalInbox) -> None:
        self._job = job
        self._options = options
        self._outlets = Outlet(STDOUT), Outlet(STDERR)
        self._screen = Screen()
        self._relay = Relay(self._outlets, inbox)
        self._endgame = Endgame(options.grace_s)
        self._ranks: list[RankProcess] = []
        self._killed: list[int] = []  # ranks that would not end

    def start(self, command: Sequence[str], guardian: Guardian) -> None:
        """Start all ranks, and have the guardian watch them."""
        cores = core_numbers()
        for index, rank in enumerate(self._job.ranks):
            process = RankProcess(
                rank,
                command,
                rank_environment(self._job, rank, os.environ, bound=self._options.bind),
                core=cores[index % len(cores)] if self._options.bind else None,
                streams=self._streams(rank),
            )
            self._ranks.append(process)
            guardian.watch(process.pid)
            for pipe, stream in process.pipes():
                self._relay.add(pipe, stream)

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

    def _send(self, number: int) -> None:
        for process in self._ranks:
            if process.end is None and number == signal.SIGKILL:
                self._killed.append(process.rank)
            if process.end is None or number == signal.SIGKILL:
                process.signal(number, group=number == signal.SIGKILL)

    def leave_nothing(self) -> None:
        """Write what ranks have written; end whatever they started; reap them."""
        self._drain()
        for process in self._ranks:
            process.signal(signal.SIGKILL, group=True)
        self._drain()
        self._relay.close()
        for process in self._ranks:
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
        endgame = self._endgame
        if endgame.cause:
            self._say(f"ended by {signal_name(endgame.cause)}")
            if self._killed:
                ranks = ", ".join(map(str, self._killed))
                self._say(f"still running after {self._options.grace_s:g} s, killed: rank {ranks}")
            return 128 + endgame.cause
        ends = [self._judged(process) for process in self._ranks]
        by_themselves = [end for end in ends if end.at <= endgame.ended_by_us]
        first = verdict.first_failure(by_themselves) or verdict.first_failure(ends)
        if first is None:
            return 0
        self._describe(first, by_themselves)
        return verdict.exit_status(first.code)

    def _judged(self, process: RankProcess) -> verdict.End:
        assert process.end is not None
        if process.streams is None or process.end.code < 0:
            return process.end
        words = "\n".join(verdict.last_lines(process.streams[1].tail))
        return replace(process.end, secondary=verdict.tells_of_lost_peer(words))

    def _describe(self, first: verdict.End, by_themselves: Sequence[verdict.End]) -> None:
        streams = self._ranks[self._job.ranks.index(first.rank)].streams
        others = [str(e.rank) for e in by_themselves if e.code != 0 and e.rank != first.rank]
        if others:
            self._say(f"failed after rank {first.rank}: rank {', '.join(others)}")
        lines = verdict.last_lines(streams[1].tail) if streams else []
        if lines:
            self._say(f"the last words of rank {first.rank}:")
            self._outlets[1].put("".join(f"    {line}\n" for line in lines).encode())
        self._say(verdict.describe(first))

    def _say(self, text: str) -> None:
        self._outlets[1].put(f"cobre-comm: {text}\n".encode())
        self._outlets[1].write_all()
