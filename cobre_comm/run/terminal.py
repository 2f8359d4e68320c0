"""One attempt of ``cobre-comm run``, with what a terminal needs: output, signals, last lines.

The attempt itself is that of every launcher (``processes/attempt.py``).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cobre_comm.errors import signal_name
from cobre_comm.processes.attempt import Attempt
from cobre_comm.processes.binding import UNBOUND, Binding, Cpus
from cobre_comm.processes.environment import attempt_variables, rank_environment
from cobre_comm.processes.escalation import GRACE_S
from cobre_comm.processes.job import Job
from cobre_comm.processes.job_control import STOPPING
from cobre_comm.processes.loop import NEVER
from cobre_comm.processes.mpi.mpiexec import Mpiexec
from cobre_comm.processes.mpi.start import MpiStart
from cobre_comm.processes.mpi.variables import of_batch_job
from cobre_comm.processes.rank import RankProcess
from cobre_comm.processes.restarts import ASKED, AttemptEnding
from cobre_comm.run.last_lines import by_ranks, by_signal
from cobre_comm.run.launcher_signals import ENDING_SIGNALS, GROUP_SIGNALS, SignalInbox
from cobre_comm.run.output.destinations import Output, Shown
from cobre_comm.run.output.outlet import Outlet
from cobre_comm.system.open_files import SPARE_DESCRIPTORS, allow

STRAGGLERS_S = 0.3  # the time in which children of ranks may end by themselves
WITNESS_S = 0.05  # for a sender of a signal to reach all processes, if it sends to all
EACH, SHIM = 4, 1  # descriptors that each rank takes, and that its shim takes


@dataclass(frozen=True)
class Options:
    """The options of a run, apart from its command."""

    binding: Binding = UNBOUND
    grace_s: float = GRACE_S  # the time for ranks to end after a signal
    shown: Shown = field(default_factory=Shown)
    # Signals that ask ranks to stop. After the first signal of each number, the launcher waits for
    # the ranks to end by themselves.
    asking: frozenset[int] = frozenset()

    @property
    def ending(self) -> frozenset[int]:
        """The signals after which the job is not started again."""
        return self.asking.union(ENDING_SIGNALS)


def run_attempt(
    job: Job,
    command: Sequence[str],
    options: Options,
    inbox: SignalInbox,
    mpiexec: Mpiexec | None = None,
) -> AttemptEnding:
    """Run ``command`` on every rank that ``job`` has here; call this in the main thread.

    With ``mpiexec``, a rank is started when its shim has connected; otherwise at once.

    The status is 0 if and only if all these ranks exited with 0 and their output was written.
    Otherwise the status is the exit code of the first rank that failed, or 128 plus the number of
    the signal that ended this rank or the launcher, or 1 if nothing but output is missing.
    """
    each = EACH if mpiexec is None else EACH + SHIM
    allow(each * len(job.ranks) + SPARE_DESCRIPTORS)
    terminal = _Terminal(job, options, inbox)
    try:
        if mpiexec is None:
            terminal.start(command)
        else:
            terminal.start_by(mpiexec, command)
        terminal.attempt.until_all_ended(terminal.step)
    finally:
        terminal.leave_nothing()
    return terminal.report()


class _Terminal:
    """The terminal of a job: it relays output and signals, and shows how the ranks have ended."""

    def __init__(self, job: Job, options: Options, inbox: SignalInbox) -> None:
        self.attempt = Attempt(job, self._say, options.grace_s)
        self._job = job
        self._options = options
        self._output = Output(self.attempt.loop, job.size, options.shown)
        self._relay = self._output.relay
        self._inbox = inbox
        self._asking = set(options.asking)
        self._is_asked_to_end = False
        self._signals: list[int] = []  # signals that have arrived and are not handled yet
        self._to_forward: list[tuple[float, int]] = []  # when to forward, and which signal
        self._hurried_by = 0  # the last signal that asked to end at once, or 0
        self.attempt.loop.serve(inbox.fileno(), self._take_signals)

    def _say(self, line: str) -> None:
        """Put a line on stderr, between the lines of the ranks."""
        self._output.outlets[1].put(f"cobre-comm: {line}\n".encode(errors="backslashreplace"))

    def start(self, command: Sequence[str]) -> None:
        """Start all ranks, and make the guardian watch them."""
        for rank in self._job.ranks:
            environment = rank_environment(self._job, rank, os.environ, self._options.binding)
            self._begin(command, rank, environment)

    def start_by(self, mpiexec: Mpiexec, command: Sequence[str]) -> None:
        """Make ``mpiexec`` start shims, and start each rank when its shim has connected."""
        batch = of_batch_job(os.environ) | attempt_variables(self._job)

        def begin(rank: int, environment: dict[str, str], inherited: tuple[int, ...]) -> None:
            self._begin(command, rank, environment | batch, inherited)

        attempt, standard = self.attempt, self._output.of_mpiexec()
        attempt.starter = MpiStart(
            mpiexec, self._job.size, standard, attempt.loop, begin, attempt.guardian.watch
        )

    def _begin(
        self,
        command: Sequence[str],
        rank: int,
        environment: Mapping[str, str],
        inherited: tuple[int, ...] = (),
    ) -> None:
        """Start a rank, and make the guardian watch it."""
        cpus: Cpus = ()
        if self._options.binding.cpus:
            cpus = self._options.binding.cpus[rank - self._job.ranks.start]
        standard = self._output.of_rank(rank)._replace(others=inherited)
        environment = {**environment, **self._output.variables}
        self.attempt.add(RankProcess(rank, command, environment, standard, cpus=cpus))

    def step(self, until: float) -> None:
        """Relay output until a given time at most, and handle the signals that arrive."""
        due = [] if self.attempt.is_starting else [at for at, _ in self._to_forward]
        self._relay.step(min([until, *due]))
        for number in self._taken_signals():
            self._handle(number)
        self._forward(time.monotonic())
        if self.attempt.starter is not None and self.attempt.escalation.began != NEVER:
            self._output.mute_mpiexec()  # mpiexec only reports the end of shims now

    def _take_signals(self) -> None:
        numbers = self._inbox.take()
        self._signals += numbers
        self._is_asked_to_end |= not self._options.ending.isdisjoint(numbers)

    def _taken_signals(self) -> list[int]:
        signals, self._signals = self._signals, []
        return signals

    def _handle(self, number: int) -> None:
        if number == signal.SIGCHLD:
            if ended_by := self.attempt.job_control.look():
                self._handle(ended_by)
            self.attempt.look()
            return
        if number in STOPPING:  # JobControl's handler has done everything
            return
        if number in self._asking:
            self._asking.remove(number)  # a second signal of this number ends the job
        elif number in ENDING_SIGNALS:
            self.attempt.escalation.signalled(number, time.monotonic())
            if number == signal.SIGINT:
                self._output.hold_interrupts()
        self._to_forward.append((time.monotonic() + WITNESS_S, number))

    def _forward(self, now: float) -> None:
        """Forward the signals that are due, unless the ranks have got them from the sender too.

        As long as ``mpiexec`` starts ranks, the signals wait, because every rank should get them.
        """
        if self.attempt.is_starting:
            return
        due = [number for at, number in self._to_forward if at <= now]
        del self._to_forward[: len(due)]
        for number in due:
            if not self.attempt.guardian.has_seen(number):
                self.attempt.signal(number, group=number in GROUP_SIGNALS)

    def leave_nothing(self) -> None:
        """Relay the rest of the output, end what ranks have started, and reap the ranks."""
        if self.attempt.starter is not None:
            self.attempt.starter.leave(self._impatient)
        self._drain()
        self.attempt.close(self._impatient)
        self._drain()
        self._relay.close()
        while not self._relay.is_done and not self._impatient(NEVER):
            pass
        self._output.close()

    def _drain(self) -> None:
        """Read the pipes to their ends, but not for long if another process holds a pipe open."""
        until = time.monotonic() + STRAGGLERS_S
        while self._relay.is_reading and time.monotonic() < until:
            if self._impatient(until):
                break
            if self._relay.is_held_up:  # the reader of our output is slow, not a rank
                until = time.monotonic() + STRAGGLERS_S

    def _impatient(self, until: float) -> bool:
        """Relay output until a given time; return whether a signal asks to end at once."""
        self._relay.step(until)
        asking = [number for number in self._taken_signals() if number in ENDING_SIGNALS]
        self._hurried_by = next(iter(asking), self._hurried_by)
        return bool(asking)

    def report(self) -> AttemptEnding:
        """Write the last lines to stderr; return how the attempt has ended."""
        attempt = self.attempt
        for ending in attempt.endings:
            if ending.report is not None and ending.report.is_held:
                self._output.record(ending.rank, ending.report.trace)
        if attempt.escalation.cause:
            status, lines = by_signal(attempt, self._output.interrupts)
        else:
            status, lines = by_ranks(attempt, self._output.tails)
        stdout, stderr = self._output.outlets
        is_cut = not (stdout.is_empty and stderr.is_empty)  # a signal came before all was read
        if not stdout.is_empty:
            stdout.drop()
            stdout.problem = f"stdout is incomplete: ended by {signal_name(self._hurried_by)}"
        for line in [*self._output.problems, *lines]:
            self._say(line)
        is_cut |= not self._writes(stderr, STRAGGLERS_S if is_cut else NEVER)
        if stderr.problem:  # stderr is on a full disk, but stdout may have room
            stdout.put(f"cobre-comm: {stderr.problem}\n".encode())
            is_cut |= not self._writes(stdout, NEVER)
        without_rank = 128 + self._hurried_by if is_cut else int(bool(self._output.problems))
        return attempt.ending(
            status or without_rank,
            has_failed=status != 0,
            why_final=self._why_final(),
        )

    def _writes(self, outlet: Outlet, within_s: float) -> bool:
        """Write the queue of an outlet; return False if a signal or the time ends the wait."""
        self._relay.close()  # no pipe is left, so this only makes the loop serve the outlets
        until = time.monotonic() + within_s
        while not outlet.is_empty and time.monotonic() < until:
            if self._impatient(until):
                break
        return outlet.is_empty

    def _why_final(self) -> str:
        """Return the reason why there should be no further attempt; "" if there is none."""
        if self._is_asked_to_end:
            return ASKED
        if any(outlet.is_broken for outlet in self._output.outlets):
            return "nobody reads its output any more"
        return ""
