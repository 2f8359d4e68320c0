"""One rank that ``mpiexec`` has started by way of a shim."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

from cobre_comm.processes import endings
from cobre_comm.processes.guardian import kill_group
from cobre_comm.processes.rank import code_without_reaping
from cobre_comm.run.lines import Stream


class MpiRank:
    """A rank that begins some time after ``mpiexec``, as an adopted child of this process.

    Parameters
    ----------
    rank : int
        Which.
    streams : tuple of Stream, or None
        For its stdout and stderr; None lets it write where the launcher does.

    Attributes
    ----------
    pid : int
        Its process; 0 before it has begun.
    has_aborted : bool
        Whether it has called MPI_Abort, as far as that can be seen.
    """

    def __init__(self, rank: int, streams: tuple[Stream, Stream] | None) -> None:
        self.rank = rank
        self.end: endings.End | None = None
        self.streams = streams
        self.pid = 0
        self.has_aborted = False
        self._owed: list[tuple[int, bool]] = []  # signals that came before it
        self._mine: list[int] = []  # read ends
        self._its = [0 if rank == 0 else os.open(os.devnull, os.O_RDONLY)]
        if streams is None:
            self._its += [1, 2]
            return
        for _ in streams:
            reader, writer = os.pipe()
            self._mine.append(reader)
            self._its.append(writer)

    def pipes(self) -> list[tuple[int, Stream]]:
        """Return the descriptors to read, each with what takes its bytes."""
        return list(zip(self._mine, self.streams or (), strict=True))

    @property
    def standard(self) -> list[int]:
        """Descriptors of its stdin, stdout and stderr, to be sent to it."""
        return self._its

    def sent(self) -> None:
        """Close what it has got, so that its pipes end when it does."""
        for descriptor in self._its:
            if descriptor > 2:
                os.close(descriptor)
        self._its = []

    def began(self, pid: int) -> None:
        """Take note of its process, and hand on the signals that came before it."""
        self.pid = pid
        for number, group in self._owed:
            self.signal(number, group=group)
        self._owed.clear()

    def never_begins(self) -> None:
        """Take note that its start has failed, which is not its fault."""
        self.end = endings.End(self.rank, 1, time.monotonic(), secondary=True)

    def look(self) -> bool:
        """See :meth:`Rank.look`."""
        if self.end is not None or not self.pid:
            return False
        code = code_without_reaping(self.pid)
        if code is not None:
            self.end = endings.End(self.rank, code, time.monotonic())
        return code is not None

    def signal(self, number: int, *, group: bool) -> None:
        """See :meth:`Rank.signal`."""
        if not self.pid:
            self._owed.append((number, group))
        elif group:
            kill_group(self.pid, number)
        elif self.end is None:
            os.kill(self.pid, number)

    def job_aborted(self) -> None:
        """Kill it if it was this rank that had ``mpiexec`` end the job: MPI_Abort may return."""
        if self.end is None and (self.streams is None or self._abort_code() is not None):
            self.has_aborted = True
            self.signal(signal.SIGKILL, group=True)

    def _abort_code(self) -> int | None:
        return None if self.streams is None else endings.abort_code(self.streams[1].tail)

    def judged(self, starter: endings.End | None) -> endings.End:
        """Return how it ended, given how ``mpiexec`` ended the job, if it did.

        A rank that has called MPI_Abort ended when ``mpiexec`` began to end the others, and with
        the code that it called MPI_Abort with.
        """
        assert self.end is not None
        code = self._abort_code()
        if code is None and self.has_aborted and starter is not None and starter.code > 0:
            code = starter.code
        if code is None:
            return self.end
        at = self.end.at if starter is None else min(self.end.at, starter.at)
        return replace(self.end, code=code, at=at)

    def reap(self) -> None:
        """See :meth:`Rank.reap`."""
        if self.pid:
            os.waitpid(self.pid, 0)
        self.sent()
        for reader in self._mine:
            os.close(reader)
