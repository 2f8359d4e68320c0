"""The ranks of a job of tests: they receive bodies, report outcomes, and leave when asked.

As for every launcher, the engine starts, watches and reaps the ranks (``processes/attempt.py``).
But here no rank is ended because another rank has failed.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import IO, Any

from cobre_comm.contract.closing import Closing
from cobre_comm.launching.interrupt import outcome_of
from cobre_comm.launching.replies import Failed
from cobre_comm.processes.attempt import Attempt
from cobre_comm.processes.interpreter import calling
from cobre_comm.processes.job import Job
from cobre_comm.processes.loop import Outbox
from cobre_comm.processes.rank import RankProcess, Standard
from cobre_comm.testing.ranks.outcome import Outcome
from cobre_comm.testing.ranks.surroundings import inherited_environment, scaled_limit

SINGLE_THREADED = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
POLL_S = 0.05  # the time between two looks for processes that ended without a report
GRACE_S = 5.0  # how long processes may take to leave by themselves
STACK_S = 0.2  # the time that a rank gets to write its stacks
OUTPUT_BYTES = 6000


class Member:
    """One rank of a job; ``start`` starts its process with the given stdin, stdout and stderr."""

    def __init__(self, attempt: Attempt, start: Callable[[Standard], RankProcess]) -> None:
        self._outbox = Outbox(attempt.loop)
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # open until `close`
        self._begin = 0
        self.outcome: Outcome | None = None  # the outcome of the body that runs now
        self.process = start(Standard(self._outbox.reader, *duplicates(self._output)))
        self.rank = self.process.rank
        attempt.add(self.process, self._hear)

    def send(self, order: bytes) -> None:
        """Send a body to the process; if the process has ended, the outcome will say so."""
        self.outcome = None
        self._begin = os.fstat(self._output.fileno()).st_size
        self._outbox.send(order)

    def _hear(self, message: bytes) -> None:
        said, error = outcome_of(partial(pickle.loads, message))
        report: Any = said if error is None else ("exception", Failed.of(error))
        kind, content = report
        if kind == "value":
            self.outcome = Outcome(self.rank, value=content, output=self._written())
        elif kind == "exception":
            raised, trace = content.exception(), content.report.trace
            self.outcome = Outcome(
                self.rank, exception=raised, traceback=trace, output=self._written()
            )
        else:
            self.outcome = self._ended(content)

    def _ended(self, code: int | None) -> Outcome:
        return Outcome(self.rank, ended=True, exit_code=code, output=self.tail())

    def look(self) -> None:
        """Note whether the process has ended without a report."""
        if self.process.ending is not None and self.outcome is None:
            taken = self.process.is_code_taken
            self.outcome = self._ended(None if taken else self.process.ending.code)

    def ask_where(self) -> None:
        """Make the process write its stacks; if it is stopped, let it continue first."""
        for number in (signal.SIGCONT, signal.SIGUSR1):
            self.process.signal(number, group=False)

    def is_overdue(self) -> None:
        """Kill the process, because it missed the deadline, and all processes that it started."""
        self.process.signal(signal.SIGKILL, group=True)
        self.outcome = Outcome(self.rank, timed_out=True, output=self.tail())

    def tail(self) -> str:
        """Return the last output of the process, for an outcome without a report."""
        return self._written()

    def _written(self) -> str:
        return tail(self._output, self._begin)

    def hang_up(self) -> None:
        """Ask the process to leave; it does when it is not busy."""
        self._outbox.close()

    def close(self) -> None:
        """Close the output of the process."""
        self._output.close()


class RankJob(Closing):
    """The ranks of one job."""

    rank_process = RankProcess

    def __init__(self, backend: str, size: int) -> None:
        self.attempt = Attempt(Job(size, backend), lambda line: None)
        self.members: list[Member] = []

    def start(self, rank: int, environment: Mapping[str, str]) -> None:
        """Start a rank as a child of this process."""
        environment = {**inherited_environment(), **SINGLE_THREADED, **environment}
        start = partial(self.rank_process, rank, command(), environment)
        self.members.append(Member(self.attempt, start))

    @property
    def pids(self) -> list[int]:
        """Process ids in rank order."""
        return [member.process.pid for member in self.members]

    def run(self, orders: Sequence[bytes], timeout_s: float) -> list[Outcome]:
        """Send a body to each rank; return all outcomes. Kill processes busy at the deadline."""
        for member, order in zip(self.members, orders, strict=True):
            member.send(order)
        if not self._step_until(self._is_idle, scaled_limit(timeout_s)):
            busy = [member for member in self.members if member.outcome is None]
            for member in busy:
                member.ask_where()
            self._step_until(lambda: False, STACK_S)
            for member in busy:
                member.is_overdue()
        return [member.outcome for member in self.members if member.outcome is not None]

    def _is_idle(self) -> bool:
        return all(member.outcome is not None for member in self.members)

    def _step_until(self, is_done: Callable[[], bool], limit_s: float) -> bool:
        """Take steps until a condition holds or the time has passed; return whether it holds."""
        deadline = time.monotonic() + limit_s
        while not is_done():
            now = time.monotonic()
            if now >= deadline:
                return False
            self.attempt.loop.step(min(deadline, now + POLL_S))
            self.look()
        return True

    def look(self) -> None:
        """Note which processes have ended."""
        self.attempt.look()
        for member in self.members:
            member.look()

    def kill(self) -> None:
        """Kill all processes, and all that they have started."""
        self.attempt.signal(signal.SIGKILL, group=True)

    def close(self) -> None:
        """Let all processes leave together, kill those that do not, and close pipes and files."""
        for member in self.members:
            member.hang_up()
        self._step_until(lambda: not self.attempt.running, self._grace_s())
        self.kill()
        self._leave_starter()
        self.attempt.close()
        for member in self.members:
            member.close()
        self.members = []

    def _grace_s(self) -> float:
        """Return how long processes may take to leave by themselves."""
        return GRACE_S

    def _leave_starter(self) -> None:
        """Let ``mpiexec`` leave, if it has started the ranks."""


def command() -> list[str]:
    """Return the command that starts a rank."""
    return [sys.executable, *calling("cobre_comm.testing.ranks.bodies")]


def pack_order(
    key: str, keep: bool, environment: Mapping[str, str], body: Callable[..., Any], args: Any
) -> bytes:
    """Pickle a body for a rank, together with the path from which to import it."""
    if getattr(body, "__module__", None) == "__main__":
        name = getattr(body, "__qualname__", repr(body))
        raise ValueError(
            f"the ranks of tests import functions, and cannot import {name} from the program that "
            "was started: define it in a module, or call launch of cobre_comm"
        )
    payload = pickle.dumps((key, keep, dict(environment), body, args))
    return pickle.dumps((list(sys.path), payload))


def duplicates(file: IO[bytes]) -> tuple[int, int]:
    """Return two more descriptors of a file, one for stdout and one for stderr."""
    return os.dup(file.fileno()), os.dup(file.fileno())


def tail(file: IO[bytes], begin: int = 0) -> str:
    """Return the end of a file that processes write to, but nothing before ``begin``."""
    begin = max(begin, os.fstat(file.fileno()).st_size - OUTPUT_BYTES)
    return os.pread(file.fileno(), OUTPUT_BYTES, begin).decode(errors="replace")
