"""The parent's side of the ranks: start, hand out a body, collect with a deadline, end."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import IO, Any

from cobre_comm.testing.outcome import Outcome

POLL_S = 0.05  # how often to look for processes that ended without a report
GRACE_S = 5.0  # how long a process may take to leave by itself
OUTPUT_CHARACTERS = 6000
SINGLE_THREADED = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
# What the surroundings of the parent must not decide for its ranks.
PRIVATE_PREFIXES = ("COBRE_", "PMI_", "OMPI_", "SLURM_", "MPI_LOCALRANKID")


class RankProcess:
    """One rank in a process of its own.

    Parameters
    ----------
    rank : int
        For reports.
    environment : mapping
        Added to this process's environment, without what would decide about backends.
    """

    def __init__(self, rank: int, environment: Mapping[str, str]) -> None:
        self.rank = rank
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # as long as the process
        ours, theirs = multiprocessing.Pipe()
        inherited = {
            name: value for name, value in os.environ.items()
            if not name.startswith(PRIVATE_PREFIXES)
        }  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cobre_comm.testing.worker", str(theirs.fileno())],
            env={**inherited, **SINGLE_THREADED, **environment},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
        )
        theirs.close()
        self.connection: Connection = ours

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def send(self, task: bytes) -> None:
        """Hand out a body; a process that is gone is found when its report is collected."""
        with contextlib.suppress(OSError):
            self.connection.send_bytes(task)

    def try_receive(self) -> Outcome | None:
        """Return the report, or the end of the process, or None if it is still busy."""
        code = self._process.poll()  # asked first: what it reported before its end still counts
        if self.connection.poll():
            try:
                kind, content, text = pickle.loads(self.connection.recv_bytes())
            except (EOFError, OSError):
                code = self._process.wait()
            else:
                if kind == "value":
                    return Outcome(self.rank, value=content)
                return Outcome(self.rank, exception=content, traceback=text)
        if code is None:
            return None
        return Outcome(self.rank, exit_code=code, output=self.tail())

    def overdue(self) -> Outcome:
        """Ask where it is, end it, and return that as its outcome."""
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGUSR1)
        time.sleep(0.2)
        self.kill()
        return Outcome(self.rank, timed_out=True, output=self.tail())

    def tail(self) -> str:
        """Return the last of what the process wrote."""
        self._output.seek(0)
        return self._output.read().decode(errors="replace")[-OUTPUT_CHARACTERS:]

    def _signal(self, number: int) -> None:
        if self._process.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once, also if it is stopped."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Let it leave by itself, or end it; give up its descriptors."""
        self.connection.close()
        try:
            self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._output.close()


def pack_task(
    key: str, keep: bool, environment: Mapping[str, str], body: Callable[..., Any], args: Any
) -> bytes:
    """Pickle a body for a worker, together with the path to import it from."""
    payload = pickle.dumps((key, keep, dict(environment), body, args))
    return pickle.dumps((list(sys.path), payload))


def collect(processes: Sequence[RankProcess], timeout_s: float) -> list[Outcome]:
    """Wait for one report of every process; end those that are still busy at the deadline."""
    deadline = time.monotonic() + timeout_s
    outcomes: dict[int, Outcome] = {}
    while len(outcomes) < len(processes):
        busy = [process for process in processes if process.rank not in outcomes]
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            outcomes |= {process.rank: process.overdue() for process in busy}
            break
        wait([process.connection for process in busy], min(POLL_S, remaining_s))
        for process in busy:
            outcome = process.try_receive()
            if outcome is not None:
                outcomes[process.rank] = outcome
    return [outcomes[process.rank] for process in processes]
