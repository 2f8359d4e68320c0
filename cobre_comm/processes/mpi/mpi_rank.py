"""One rank of a job that ``mpiexec`` starts: a shim asks this launcher to start the rank."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence

from cobre_comm.processes.endings import STARTER, Ending
from cobre_comm.processes.rank import Rank, Standard
from cobre_comm.reports.report_pipe import Report


class MpiRank(Rank):
    """A rank that begins some time after ``mpiexec``, as an adopted child of this process.

    ``environment`` has variables beside those that ``mpiexec`` gives to it.
    """

    def __init__(
        self,
        rank: int,
        standard: Standard,
        environment: Mapping[str, str],
        cpus: Sequence[int] = (),
    ) -> None:
        super().__init__(rank)
        self._standard: Standard | None = standard
        self.environment = dict(environment)
        self.cpus = cpus
        self._owed: list[tuple[int, bool]] = []  # signals sent before the rank began

    @property
    def is_ordered(self) -> bool:
        """Whether a shim has got its order to start this rank."""
        return self._standard is None

    @property
    def descriptors(self) -> list[int]:
        """Its stdin, stdout, stderr and report pipe, to be sent to the shim."""
        assert self._standard is not None
        assert self.inbox is not None
        return [*self._standard[:3], self.inbox.writer]

    def sent(self) -> None:
        """Close the launcher's copies of its descriptors, so that its pipes end when it does."""
        assert self.inbox is not None
        self.inbox.handed_over()
        if self._standard is not None:
            self._standard.close()
            self._standard = None

    def began(self, pid: int) -> None:
        """Note its process id, and send it the signals that it was owed."""
        self.pid = pid
        for number, group in self._owed:
            self.signal(number, group=group)
        self._owed.clear()

    def never_begins(self, code: int = 1) -> None:
        """Note a failure that follows from ``mpiexec``, because the rank was never started."""
        lost = Report("", "", "", code, (STARTER,))
        self.ending = Ending(self.rank, code, time.monotonic(), lost)

    @property
    def announced(self) -> Ending | None:
        """Its ending as reported, because it may hang in MPI_Finalize until all ranks arrive."""
        if self._report is None or not self._report.exit_code:
            return None
        return Ending(self.rank, self._report.exit_code, time.monotonic(), self._report)

    def signal(self, number: int, *, group: bool) -> None:
        """Send a signal, to its whole process group if asked."""
        if self.pid:
            super().signal(number, group=group)
        else:
            self._owed.append((number, group))

    def reap(self) -> None:
        """Let go of an ended process, and of its pipes."""
        if self.pid:
            with contextlib.suppress(ChildProcessError):  # somebody else has waited for it
                os.waitpid(self.pid, 0)
        self.sent()
        assert self.inbox is not None
        self.inbox.close()
