"""A rank in a process that this one starts itself."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import IO

from cobre_comm.testing.ranks.link import (
    OUTPUT_CHARACTERS,
    SINGLE_THREADED,
    RankLink,
    inherited_environment,
    read_report,
    send_task,
)
from cobre_comm.testing.ranks.outcome import Outcome

GRACE_S = 5.0  # how long a process may take to leave by itself


class RankProcess(RankLink):
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
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cobre_comm.testing.ranks.worker", str(theirs.fileno())],
            env={**inherited_environment(), **SINGLE_THREADED, **environment},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
        )
        theirs.close()
        self._connection: Connection = ours

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def waitable(self) -> Connection:
        """Its connection."""
        return self._connection

    def send(self, task: bytes) -> None:
        """See :meth:`RankLink.send`."""
        send_task(self._connection, task)

    def try_receive(self) -> Outcome | None:
        """See :meth:`RankLink.try_receive`."""
        code = self._process.poll()  # asked first: what it reported before its end still counts
        if self._connection.poll():
            outcome = read_report(self.rank, self._connection)
            if outcome is not None:
                return outcome
            code = self._process.wait()
        if code is None:
            return None
        return Outcome(self.rank, ended=True, exit_code=code, output=self.tail())

    def tail(self) -> str:
        """See :meth:`RankLink.tail`."""
        self._output.seek(0)
        return self._output.read().decode(errors="replace")[-OUTPUT_CHARACTERS:]

    def signal(self, number: int) -> None:
        """See :meth:`RankLink.signal`."""
        if self._process.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """See :meth:`RankLink.kill`."""
        self.signal(signal.SIGKILL)
        self._process.wait()

    def hang_up(self) -> None:
        """See :meth:`RankLink.hang_up`."""
        self._connection.close()

    def close(self) -> None:
        """See :meth:`RankLink.close`."""
        self.hang_up()
        try:
            self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._output.close()
