"""The connection to the process of one rank: hand out a body, take its report."""

from __future__ import annotations

import abc
import contextlib
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from cobre_comm.testing.ranks.outcome import Outcome

POLL_S = 0.05  # how often to look for processes that ended without a report
OUTPUT_CHARACTERS = 6000
SINGLE_THREADED = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
# What the surroundings of the parent must not decide for its ranks.
PRIVATE_PREFIXES = (
    "COBRE_", "MPI4PY_", "MPI_LOCALRANKID", "OMPI_", "PMIX_NAMESPACE", "PMIX_RANK", "PMIX_SERVER",
    "PMI_", "SLURM_",
)  # fmt: skip


def inherited_environment() -> dict[str, str]:
    """Return this process's environment without what would decide about backends."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(PRIVATE_PREFIXES)
    }


class RankLink(abc.ABC):
    """One rank as the parent sees it.

    Attributes
    ----------
    rank : int
        For reports.
    """

    rank: int

    @property
    @abc.abstractmethod
    def pid(self) -> int:
        """Its process id."""

    @property
    @abc.abstractmethod
    def waitable(self) -> Any:
        """What becomes readable when there is news of it."""

    @abc.abstractmethod
    def send(self, task: bytes) -> None:
        """Hand out a body; a process that is gone is found when its report is collected."""

    @abc.abstractmethod
    def try_receive(self) -> Outcome | None:
        """Return the report, or the end of the process, or None if it is still busy."""

    @abc.abstractmethod
    def tail(self) -> str:
        """Return the last of what the process wrote."""

    @abc.abstractmethod
    def signal(self, number: int) -> None:
        """Send a signal unless it is gone."""

    @abc.abstractmethod
    def kill(self) -> None:
        """End it at once, also if it is stopped."""

    @abc.abstractmethod
    def hang_up(self) -> None:
        """Close the connection: a rank that is not busy leaves by itself."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let it leave by itself, or end it; give up its descriptors."""

    def overdue(self) -> Outcome:
        """Ask where it is, end it, and return that as its outcome."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGUSR1)
        time.sleep(0.2)
        self.kill()
        return Outcome(self.rank, timed_out=True, output=self.tail())


def read_report(rank: int, connection: Connection) -> Outcome | None:
    """Return what a rank reports, or None if its process has ended."""
    try:
        kind, content, text = pickle.loads(connection.recv_bytes())
    except (EOFError, OSError):
        return None
    if kind == "value":
        return Outcome(rank, value=content)
    if kind == "exit":
        return Outcome(rank, ended=True, exit_code=content)
    return Outcome(rank, exception=content, traceback=text)


def send_task(connection: Connection, task: bytes) -> None:
    """Hand out a body, also to a process that is gone."""
    with contextlib.suppress(OSError):
        connection.send_bytes(task)


def pack_task(
    key: str, keep: bool, environment: Mapping[str, str], body: Callable[..., Any], args: Any
) -> bytes:
    """Pickle a body for a worker, together with the path to import it from."""
    payload = pickle.dumps((key, keep, dict(environment), body, args))
    return pickle.dumps((list(sys.path), payload))


def collect(processes: Sequence[RankLink], timeout_s: float) -> list[Outcome]:
    """Wait for one report of every process; end those that are still busy at the deadline."""
    deadline = time.monotonic() + timeout_s
    outcomes: dict[int, Outcome] = {}
    while len(outcomes) < len(processes):
        busy = [process for process in processes if process.rank not in outcomes]
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            outcomes |= {process.rank: process.overdue() for process in busy}
            break
        wait({process.waitable for process in busy}, min(POLL_S, remaining_s))
        for process in busy:
            outcome = process.try_receive()
            if outcome is not None:
                outcomes[process.rank] = outcome
    return [outcomes[process.rank] for process in processes]
