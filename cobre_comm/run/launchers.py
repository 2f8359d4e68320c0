"""What the launchers of all machines of a job have in common."""

from __future__ import annotations

import abc
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from cobre_comm.backends.tcp.foreign import CONNECT_TIMEOUT_MS
from cobre_comm.contract.closing import Closing
from cobre_comm.errors import signal_name
from cobre_comm.processes.job import Job
from cobre_comm.processes.loop import NEVER, LauncherLoop
from cobre_comm.processes.restarts import AttemptEnding, Restarts, given_up
from cobre_comm.run.assembly import token_of
from cobre_comm.run.launcher_link import Link
from cobre_comm.run.launcher_signals import SignalInbox
from cobre_comm.run.one_machine import say
from cobre_comm.run.output.log_file import open_logs
from cobre_comm.run.terminal import Options, run_attempt

LINE_AFTER_S = 10.0  # then a line names the launchers that are missing


class Launcher(Closing):
    """One launcher of the job."""

    def __init__(
        self, job: Job, command: Sequence[str], options: Options, inbox: SignalInbox
    ) -> None:
        self._job = job
        self._command = command
        self._options = options
        self._inbox = inbox
        self._links: dict[int, Link] = {}
        self._outcome = AttemptEnding(0)  # of the latest attempt, on this machine
        self._signal = 0  # that asks to end
        self._has_begun = False  # its first attempt
        self._has_told = False  # which launchers are missing
        self._is_ending = False  # whether the ranks of the attempt are to end
        self._end: Callable[[], None] = lambda: None  # the ranks of this machine
        self._have_met: Callable[[], bool] = lambda: True  # the ranks of the job
        limit_ms = os.environ.get("COBRE_TCP_CONNECT_TIMEOUT_MS", "")
        self._limit_s = float(limit_ms if limit_ms.isdigit() else CONNECT_TIMEOUT_MS) / 1000

    def close(self) -> None:
        """Close the links."""
        for link in self._links.values():
            link.close()

    @abc.abstractmethod
    def run(self, restarts: Restarts) -> int:
        """Run all attempts; return the exit status."""

    def _attempt(self, restart: int, machine: int, machines: int) -> None:
        """Run the ranks of this machine, which is one of so many in this attempt."""
        self._has_begun = True
        share = self._job.size // self._job.nodes
        size, token = share * machines, token_of(self._job, restart)
        job = replace(self._job.again(size), restart=restart, token=token)
        job = replace(job, nodes=machines, node=machine)
        options, shown = self._options, self._options.shown
        if shown.log_dir is not None and restart:  # the ranks may have other numbers
            logs = open_logs(shown.log_dir, job, appends=True)
            options = replace(options, shown=replace(shown, logs=logs))
        self._outcome = run_attempt(job, self._command, options, self._inbox, serve=self._serve)
        self._end, self._have_met = lambda: None, lambda: True

    def _serve(
        self, loop: LauncherLoop, end: Callable[[], None], have_met: Callable[[], bool]
    ) -> None:
        """Hear the other launchers in a loop; ``end`` ends the ranks of this machine."""
        self._end, self._have_met = end, have_met
        if self._is_ending:  # since before the ranks were started
            end()
        for machine, link in self._links.items():
            if not link.is_lost:
                loop.serve(link.fileno(), partial(self._listen, loop, machine))

    def _listen(self, loop: LauncherLoop, machine: int) -> None:
        link = self._links[machine]
        if self._hear_all(machine):
            loop.unserve(link.fileno())

    def _hear_all(self, machine: int) -> bool:
        """Hear what another launcher has said; return whether it is lost."""
        link = self._links[machine]
        if not link.is_lost:
            for message in link.take():
                self._hear(machine, message)
            if link.is_lost:
                self._lose(machine)
        return link.is_lost

    def _go_on_alone(self) -> bool:
        """Whether the ranks of this machine continue once those of another one are lost."""
        return self._job.survive and self._have_met()

    @abc.abstractmethod
    def _hear(self, machine: int, message: dict[str, Any]) -> None:
        """Take one message."""

    @abc.abstractmethod
    def _lose(self, machine: int) -> None:
        """Note, once, that another launcher is lost."""

    def _is_asked_to_end(self) -> bool:
        """Note the signal that asks this launcher to end, outside attempts."""
        came = [number for number in self._inbox.take() if number in self._options.ending]
        if came:
            self._signal = came[0]
        return bool(self._signal)

    def _is_over_limit(self, seconds: float, machines: Sequence[int]) -> bool:
        """Whether the assembly has lasted too long; after some seconds, say who is missing."""
        if seconds >= LINE_AFTER_S and not self._has_told:
            self._has_told = True
            say(f"waiting for {named_machines(machines)}")
        return 0 < self._limit_s <= seconds

    def _wait(self, done: Callable[[], bool], until: float = NEVER) -> None:
        """Hear the other launchers until ``done()``, a moment, or a signal that asks to end."""
        loop = LauncherLoop()
        loop.serve(self._inbox.fileno(), self._is_asked_to_end)
        self._serve(loop, lambda: None, lambda: True)
        while not (done() or self._signal or time.monotonic() >= until):
            loop.step(until)

    def _leave(self, why: str) -> int:
        """Say why there is no further attempt; return the exit status, which is not 0."""
        if self._signal:
            say(f"ended by {signal_name(self._signal)}")
            return 128 + self._signal
        say(given_up(why) if self._has_begun else f"the job is not started: {why}")
        return self._outcome.status or 1


def named_machines(machines: Sequence[int]) -> str:
    """Return the names of machines: ``machine 2``, ``machines 1, 2``."""
    return f"machine{'s'[: len(machines) > 1]} {', '.join(map(str, machines))}"
