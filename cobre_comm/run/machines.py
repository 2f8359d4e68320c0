"""The attempts of a job on several machines: its launchers begin and end each of them together.

The launcher of machine 0 decides, and the others do as it says. They keep their links from one
attempt to the next:

======== ========= ===============================================================================
message  sent by   meaning
======== ========= ===============================================================================
start    machine 0 begin this attempt, as this machine of so many
ended    others    how the ranks of this machine have ended
end      machine 0 end the ranks, because the job has lost one on another machine
say      machine 0 a sentence for stderr
done     machine 0 there is no further attempt, and why
======== ========= ===============================================================================

A launcher that ends without its *ended* has been lost with its machine. The next attempt begins
when all machines are there; or, with ``--min-ranks``, when enough are, and the others had time to
return. Without machine 0 there is no further attempt.

With ``--survive`` a machine whose ranks are all lost, or that is lost itself, ends no other one,
unless the ranks have not met yet.
The attempt fails if survivors fail, or if there are none.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from typing import Any

from cobre_comm.errors import InitializationFailed
from cobre_comm.processes.job import Job
from cobre_comm.processes.restarts import ASKED, USAGE, AttemptEnding, Restarts
from cobre_comm.run.assembly import await_launchers, join
from cobre_comm.run.launcher_signals import FORWARDED_SIGNALS, SignalInbox
from cobre_comm.run.launchers import Launcher, named_machines
from cobre_comm.run.one_machine import pause, say
from cobre_comm.run.terminal import Options

REJOIN_S = 10.0  # for lost machines to return, where the others are enough
END_S = 60.0  # for the ranks of a machine to end after the loss of another rank


def run_on_machines(job: Job, command: Sequence[str], options: Options, restarts: Restarts) -> int:
    """Run the attempts of a job on several machines; return the exit status of this launcher."""
    with SignalInbox([*FORWARDED_SIGNALS, signal.SIGCHLD]) as inbox:
        kind = _First if job.node == 0 else _Other
        with kind(job, command, options, inbox) as launcher:
            return launcher.run(restarts)


class _First(Launcher):
    """The launcher of machine 0."""

    _ended: dict[int, AttemptEnding]  # by machine, of the latest attempt

    def run(self, restarts: Restarts) -> int:
        """Run attempts until one succeeds, or no further one can."""
        self._ended, restart = {}, 0
        while True:
            why = self._gather(restarts, restart)
            if not why:
                why = self._attempt_on_all(restart)
                together = self._together(why)
                if not together.has_failed:
                    self._tell(done="")
                    return self._outcome.status
                why = restarts.why_not(together)
            if not why:
                restart += 1
                plan = restarts.plan()
                say(plan)
                self._tell(say=plan)
                self._signal = pause(self._inbox, restarts.pause_s, self._options.ending)
                why = ASKED if self._signal else ""
            if why:
                self._tell(done=why)
                return self._leave(why)

    def _gather(self, restarts: Restarts, restart: int) -> str:
        """Wait for the other machines; return why the attempt cannot begin, or an empty string."""
        share = self._job.size // self._job.nodes
        least = restarts.least if restart else self._job.size

        def missing() -> list[int]:
            there = [machine for machine, link in self._links.items() if not link.is_lost]
            return sorted({*range(1, self._job.nodes)}.difference(there))

        def is_enough() -> bool:
            return (self._job.nodes - len(missing())) * share >= least

        def done(seconds: float) -> bool:
            for machine in list(self._links):
                self._hear_all(machine)
            if self._is_asked_to_end() or self._why_final() or not missing():
                return True
            if restart and is_enough():
                return seconds >= REJOIN_S
            return self._is_over_limit(seconds, missing())

        self._has_told = False
        if not done(0.0):
            try:
                await_launchers(self._job, self._links, missing(), done)
            except InitializationFailed as error:
                return str(error.source)
        if self._signal:
            return ASKED
        if not (self._why_final() or is_enough()):
            return f"{named_machines(missing())} did not come within {self._limit_s:g} s"
        if missing():
            self._tell(say=(fewer := f"the job goes on without {named_machines(missing())}"))
            say(fewer)
        return self._why_final()

    def _attempt_on_all(self, restart: int) -> str:
        """Run an attempt on the machines that are there; return why it is the last one, or ""."""
        self._links = {k: link for k, link in sorted(self._links.items()) if not link.is_lost}
        machines = 1 + len(self._links)
        for number, link in enumerate(self._links.values(), 1):
            link.send(start=[restart, number, machines])
        self._ended, self._is_ending = {}, False
        self._attempt(restart, 0, machines)
        if self._ends_others(self._outcome):
            self._end_all()
        self._wait(lambda: self._has_failed() or self._all_ended())
        self._wait(self._all_ended, time.monotonic() + END_S)
        for machine, link in self._links.items():
            if machine not in self._ended:
                link.close()
                link.is_lost = True
        return ASKED if self._signal else ""

    def _is_one_lost(self) -> bool:
        """Whether a machine is lost before its ranks had ended."""
        return any(link.is_lost and k not in self._ended for k, link in self._links.items())

    def _ends_others(self, outcome: AttemptEnding) -> bool:
        """Whether the ranks of all machines end because those of one have ended so."""
        return outcome.has_failed and not (self._job.survive and outcome.is_lost)

    def _has_failed(self) -> bool:
        """Whether a rank or machine has failed; with ``--survive``, whether the survivors have."""
        ended = self._outcome, *self._ended.values()
        if any(map(self._ends_others, ended)):
            return True
        if self._job.survive:
            return self._all_ended() and all(one.is_lost for one in ended)
        return self._is_one_lost()

    def _all_ended(self) -> bool:
        return all(k in self._ended or link.is_lost for k, link in self._links.items())

    def _together(self, why: str) -> AttemptEnding:
        """Return how the attempt has ended on all machines."""
        all_of_them = [self._outcome, *self._ended.values()]
        is_usage = any(one.status == USAGE for one in all_of_them)
        return AttemptEnding(
            USAGE if is_usage else self._outcome.status,
            has_failed=bool(why) or self._has_failed(),
            at_once=not self._is_one_lost() and all(one.at_once for one in all_of_them),
            why_final=why or self._outcome.why_final or self._why_final(),
        )

    def _why_final(self) -> str:
        """Return why another machine wants no further attempt; "" if none has said so."""
        said = ((machine, one.why_final) for machine, one in self._ended.items())
        return next((f"on machine {machine} {why}" for machine, why in said if why), "")

    def _hear(self, machine: int, message: dict[str, Any]) -> None:
        if "ended" in message:
            self._ended[machine] = AttemptEnding(*message["ended"])
            if self._ends_others(self._ended[machine]):
                self._end_all()

    def _lose(self, machine: int) -> None:
        if machine not in self._ended and not self._go_on_alone():
            self._end_all()

    def _end_all(self) -> None:
        """End the ranks of this attempt on all machines."""
        self._is_ending = True
        self._tell(end=True)
        self._end()

    def _tell(self, **message: Any) -> None:
        for link in self._links.values():
            if not link.is_lost:
                link.send(**message)


class _Other(Launcher):
    """The launcher of any other machine."""

    def run(self, restarts: Restarts) -> int:
        """Take part in each attempt, until machine 0 says that there is no further one."""
        link = join(self._job, lambda s: self._is_asked_to_end() or self._is_over_limit(s, [0]))
        if isinstance(link, str):
            return self._leave(f"machine {self._job.node} cannot reach machine 0: {link}")
        self._links, self._start, self._done = {0: link}, list[int](), ""
        self._is_over = False
        while True:
            self._wait(lambda: bool(self._start) or self._is_over)
            if self._signal:
                self._tell(AttemptEnding(128 + self._signal, has_failed=True, why_final=ASKED))
                return self._leave(ASKED)
            if self._is_over:
                has_survived = (
                    self._has_begun and self._job.survive and not self._outcome.has_failed
                )
                is_done = has_survived or not self._done
                return self._outcome.status if is_done else self._leave(self._done)
            (restart, machine, machines), self._start = self._start, []
            self._attempt(restart, machine, machines)
            self._tell(self._outcome)
            if self._outcome.why_final:
                return self._outcome.status

    def _tell(self, outcome: AttemptEnding) -> None:
        self._links[0].send(ended=outcome)

    def _hear(self, machine: int, message: dict[str, Any]) -> None:
        if "start" in message:
            self._start, self._is_ending = message["start"], False
        if "say" in message:
            say(message["say"])
        if "done" in message:
            self._is_over, self._done = True, message["done"]
        if "end" in message or self._is_over:
            self._is_ending = True
            self._end()

    def _lose(self, machine: int) -> None:
        if not self._is_over:
            self._is_over, self._done = True, "the launcher of machine 0 is lost"
            if not self._go_on_alone():
                self._is_ending = True
                self._end()
