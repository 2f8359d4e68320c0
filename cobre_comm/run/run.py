"""One attempt of a job: start the ranks of a command, watch them to the end, report it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cobre_comm.common import stack_signal
from cobre_comm.common.streams import STDIN
from cobre_comm.processes.binding import UNBOUND, Binding, Cpus
from cobre_comm.processes.endings import STARTER, Ending, describe_loss
from cobre_comm.processes.environment import attempt_variables, rank_environment
from cobre_comm.processes.escalation import (
    CULPRIT_OVER_MPI_S,
    CULPRIT_S,
    GRACE_S,
    Escalation,
    where_crowded,
)
from cobre_comm.processes.group import Group
from cobre_comm.processes.job import Job
from cobre_comm.processes.job_control import STOPPING, JobControl, is_in_background
from cobre_comm.processes.loop import NEVER, Loop
from cobre_comm.processes.mpi.mpiexec import Mpiexec
from cobre_comm.processes.mpi.rank import MpiRank
from cobre_comm.processes.mpi.start import MpiStart
from cobre_comm.processes.mpi.variables import of_batch_job
from cobre_comm.processes.rank import RankProcess
from cobre_comm.processes.restarts import Outcome, died_at_once, killed_by_others
from cobre_comm.run.descriptors import SPARE_DESCRIPTORS, allow
from cobre_comm.run.output.destinations import Output, Shown
from cobre_comm.run.report import by_ranks, by_signal
from cobre_comm.run.signals import ENDING_SIGNALS, GROUP_SIGNALS, SignalInbox

STRAGGLERS_S = 0.3  # for processes that ranks have started to end by themselves
WITNESS_S = 0.05  # for a sender of a signal to reach all processes, if it sends to all
EACH, EACH_BY_SHIM = 4, 9  # descriptors for each rank

Serve = Callable[[Loop, Callable[[], None], Callable[[], bool]], None]


@dataclass(frozen=True)
class Options:
    """The options of a run, apart from its command.

    Parameters
    ----------
    binding : Binding
        Where the ranks of this machine run.
    grace_s : float
        Seconds that ranks may take to end after a signal.
    shown : Shown
        The choices on their output.
    asking : frozenset of int
        Signals that ask ranks to stop; after the first of each, the launcher waits for the ranks.
    """

    binding: Binding = UNBOUND
    grace_s: float = GRACE_S
    shown: Shown = field(default_factory=Shown)
    asking: frozenset[int] = frozenset()

    @property
    def ending(self) -> frozenset[int]:
        """The signals after which the job is not started again."""
        return self.asking.union(ENDING_SIGNALS)


def run(
    job: Job,
    command: Sequence[str],
    options: Options,
    inbox: SignalInbox,
    mpiexec: Mpiexec | None = None,
    serve: Serve = lambda loop, end, have_met: None,
) -> Outcome:
    """Run ``command`` on every rank that ``job`` has here; call it from the main thread.

    Parameters
    ----------
    job : Job
        The job.
    command : sequence of str
        The command of every rank.
    options : Options
        The options.
    inbox : SignalInbox
        The signals of the launcher.
    mpiexec : Mpiexec, optional
        The program that starts the ranks; with None, this process starts them.
    serve : callable
        Called with the loop of the launcher; a function that ends the ranks, because the job has
        lost one on another machine; and one that tells whether the ranks have met.

    Returns
    -------
    Outcome
        Its status is 0 if and only if all these ranks exited with 0, and their output was written;
        else the code of the first that failed, or 128 and the number of the signal that ended it or
        the launcher, or 1 if only output is missing.
    """
    each = EACH if mpiexec is None else EACH_BY_SHIM
    allow(each * len(job.ranks) + SPARE_DESCRIPTORS)
    watch = _Watch(job, options, inbox)
    try:
        if mpiexec is None:
            watch.start(command)
        else:
            watch.start_by(mpiexec, command)
        serve(watch.loop, watch.end, watch.have_met)
        watch.until_all_ended()
    finally:
        watch.leave_nothing()
    return watch.report()


class _Watch:
    """The ranks that a job has on this node, from start to report."""

    def __init__(self, job: Job, options: Options, inbox: SignalInbox) -> None:
        self._job = job
        self._options = options
        culprit_s = CULPRIT_OVER_MPI_S if job.backend == "mpi" else CULPRIT_S
        crowded_s = where_crowded(culprit_s, len(job.ranks))
        self._escalation = Escalation(options.grace_s, crowded_s, survive=job.survive)
        self._group = Group(job.shm_name, self._escalation)
        self._output = Output(self._group.loop, job.size, options.shown)
        self._relay = self._output.relay
        self._inbox = inbox
        self._shown: set[int] = set()  # ranks that were asked where they are
        self._told: set[int] = set()  # lost ranks, while the others go on
        self._asking = set(options.asking)
        self._is_asked_to_end = False
        self._ends_for_others = False
        self._began = time.monotonic()
        self._signals: list[int] = []  # that came and are not handled yet
        self._to_forward: list[tuple[float, int]] = []  # when, and which
        self._group.loop.serve(inbox.fileno(), self._take_signals)
        self._mpi: MpiStart | None = None
        self._job_control = JobControl(self._group.ranks)

    @property
    def loop(self) -> Loop:
        """The loop that serves all descriptors."""
        return self._group.loop

    def end(self) -> None:
        """End all ranks, because the job has lost one on another machine."""
        self._ends_for_others = True
        self._group.starter_ended(Ending(STARTER, 1, time.monotonic()))

    def have_met(self) -> bool:
        """Tell whether the ranks of the job have met."""
        return self._group.have_met

    def start(self, command: Sequence[str]) -> None:
        """Start all ranks, and have the guardian watch them."""
        cpus = self._cpus()
        for rank in self._job.ranks:
            environment = rank_environment(self._job, rank, os.environ, self._options.binding)
            environment.update(self._output.variables)
            standard = self._output.of_rank(rank)
            self._group.add(RankProcess(rank, command, environment, standard, cpus=cpus[rank]))

    def start_by(self, mpiexec: Mpiexec, command: Sequence[str]) -> None:
        """Have ``mpiexec`` start all ranks."""
        cpus = self._cpus()
        batch = of_batch_job(os.environ) | self._output.variables | attempt_variables(self._job)
        ranks = []
        for rank in self._job.ranks:
            # mpiexec has a session of its own, so nothing would stop a rank that reads.
            standard = self._output.of_rank(rank, reads=not is_in_background(STDIN))
            ranks.append(MpiRank(rank, standard, batch, cpus[rank]))
            self._group.add(ranks[-1])
        self._mpi = MpiStart(ranks, command, self._group.loop, self._group.guardian.watch)
        self._mpi.start(mpiexec, self._output.of_mpiexec())

    def _cpus(self) -> dict[int, Cpus]:
        """Return the CPUs that each rank is bound to; none for ranks that are not bound.

        A restart may have fewer ranks than were placed.
        """
        ranks = self._job.ranks
        return dict(zip(ranks, self._options.binding.cpus or [()] * len(ranks), strict=False))

    def until_all_ended(self) -> None:
        """Relay output and signals, and end the job when a rank fails."""
        self._look()  # SIGCHLD may have come while ranks were started
        while self._group.running:
            self._relay.step(min([self._escalation.next_at, *(at for at, _ in self._to_forward)]))
            self._show_lost()
            self._tell_losses()
            for number in self._taken_signals():
                self._handle(number)
            self._forward(time.monotonic())
            self._look_at_mpi()
            for number in self._escalation.due(time.monotonic()):
                self._group.send(number)
                if self._mpi is not None and number == signal.SIGKILL:
                    self._mpi.end_starting()

    def _take_signals(self) -> None:
        numbers = self._inbox.take()
        self._signals += numbers
        self._is_asked_to_end |= not self._options.ending.isdisjoint(numbers)

    def _taken_signals(self) -> list[int]:
        signals, self._signals = self._signals, []
        return signals

    def _handle(self, number: int) -> None:
        if number == signal.SIGCHLD:
            self._look()
            return
        if number in STOPPING:  # its own handler has done all
            return
        if number in self._asking:
            self._asking.remove(number)  # a second one ends the job
        elif number in ENDING_SIGNALS:
            self._escalation.signalled(number, time.monotonic())
            if number == signal.SIGINT:
                self._output.hold_interrupts()
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
        if ended_by := self._job_control.look():
            self._handle(ended_by)
        self._group.look()
        self._tell_losses()

    def _tell_losses(self) -> None:
        """Tell of each rank that is lost, once, if the others go on and there are any."""
        if not self._job.survive or self._escalation.began != NEVER:
            return
        endings, running = self._group.endings, self._group.running
        losses = {ending.rank: ending for ending in endings if ending.is_loss}
        if len(losses) == len(self._group.ranks):
            return
        others = "the other ranks go on" if running else "the other ranks had ended"
        for rank in losses.keys() - self._told:
            self._told.add(rank)
            said = f"cobre-comm: {describe_loss(losses[rank])}; {others}\n"
            self._output.outlets[1].put(said.encode(errors="backslashreplace"))

    def _show_lost(self) -> None:
        """Ask lost ranks that still run to show where in their code they are."""
        for rank in self._group.lost_and_running:
            if rank.rank not in self._shown:
                self._shown.add(rank.rank)
                if stack_signal.ask(rank.pid):
                    said = (
                        f"cobre-comm: rank {rank.rank} still runs; where in its Python code, or in "
                        "compiled code that the first line calls:\n"
                    )
                    self._output.outlets[1].put(said.encode())

    def _look_at_mpi(self) -> None:
        if self._mpi is None:
            return
        if self._mpi.ending is not None:
            self._group.starter_ended(self._mpi.ending)
        if self._escalation.began != NEVER:
            self._mpi.find_leftovers()
            self._output.mute_mpiexec()  # it only tells of the end of shims

    def leave_nothing(self) -> None:
        """Relay the rest of the output, end processes that ranks have started, reap the ranks."""
        if self._mpi is not None:
            self._mpi.leave(self._impatient)
        self._drain()
        self._group.end_all(self._impatient)
        if self._mpi is not None:
            self._mpi.process.signal(signal.SIGKILL, group=True)
        self._drain()
        self._relay.close()
        self._job_control.close()
        if self._mpi is not None:
            self._mpi.process.reap()
        self._group.close()
        while not self._relay.is_done and not self._impatient(NEVER):
            pass
        self._output.close()

    def _drain(self) -> None:
        """Read the pipes to their ends; stop waiting for a process that holds one open."""
        until = time.monotonic() + STRAGGLERS_S
        while self._relay.is_reading and time.monotonic() < until:
            if self._impatient(until):
                break
            if self._relay.is_held_up:  # that is up to our own reader
                until = time.monotonic() + STRAGGLERS_S

    def _impatient(self, until: float) -> bool:
        """Relay output until a time; return whether a signal asks to end at once."""
        self._relay.step(until)
        return any(number in ENDING_SIGNALS for number in self._taken_signals())

    def report(self) -> Outcome:
        """Write the last lines to stderr; return how the attempt has ended."""
        lasted_s = time.monotonic() - self._began
        starter = None if self._mpi is None else self._mpi.ending
        for ending in self._group.endings:
            if ending.report is not None and ending.report.is_held:
                self._output.record(ending.rank, ending.report.trace)
        if self._escalation.cause:
            status, lines = by_signal(self._group, self._output.interrupts)
        elif self._ends_for_others and not self._fail_by_themselves():
            status, lines = 1, ["ended, because the job has lost a rank on another machine"]
        else:
            tails = self._output.tails
            status, lines = by_ranks(self._group, self._group.decisive, starter, tails, self._shown)
        stdout, stderr = self._output.outlets
        for line in [*self._output.problems, *lines]:
            stderr.put(f"cobre-comm: {line}\n".encode(errors="backslashreplace"))
        stderr.write_all()
        if stderr.problem:  # a full disk, so only stdout may have room
            stdout.put(f"cobre-comm: {stderr.problem}\n".encode())
            stdout.write_all()
        return Outcome(
            status or int(bool(self._output.problems)),
            has_failed=status != 0,
            at_once=died_at_once(self._group.ranks, lasted_s),
            killed=killed_by_others(self._group.ranks, self._escalation.ended_by_us),
            why_final=self._why_final(),
            is_lost=self.have_met() and all(ending.is_loss for ending in self._group.endings),
        )

    def _fail_by_themselves(self) -> bool:
        """Whether a rank has failed before this launcher has ended them."""
        by_us = self._escalation.ended_by_us
        return any(ending.code != 0 and ending.at <= by_us for ending in self._group.endings)

    def _why_final(self) -> str:
        """Return why no further attempt is wanted; "" if nobody has said so."""
        if self._is_asked_to_end:
            return "it was asked to end"
        if any(outlet.is_broken for outlet in self._output.outlets):
            return "nobody reads its output any more"
        return ""
