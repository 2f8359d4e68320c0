"""The processes of one job that a real ``mpiexec`` starts."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO

from cobre_comm.processes.mpi.mpi_rank import MpiRank
from cobre_comm.processes.mpi.mpiexec import find_mpiexec
from cobre_comm.processes.mpi.start import MpiStart
from cobre_comm.processes.rank import Standard
from cobre_comm.testing.ranks.litter import remove_litter
from cobre_comm.testing.ranks.members import (
    SINGLE_THREADED,
    Member,
    RankJob,
    command,
    duplicates,
    tail,
)
from cobre_comm.testing.ranks.surroundings import inherited_environment

# There may be more ranks than cores: Open MPI gives its core away while it waits, as MPICH does.
YIELDING = {"OMPI_MCA_mpi_yield_when_idle": "1"}
LOOK_S = 0.02


class MpiJob(RankJob):
    """One ``mpiexec`` and the ranks that it has started.

    ``environment`` is added to this process's, without variables that configure backends. Those of
    ``rank_environments`` come too late for MPI's launcher, and early enough for the rank.
    """

    def __init__(
        self, environment: Mapping[str, str], rank_environments: Sequence[Mapping[str, str]]
    ) -> None:
        mpiexec = find_mpiexec(
            {**inherited_environment(), **YIELDING, **SINGLE_THREADED, **environment}
        )
        super().__init__("mpi", len(rank_environments))
        self._began = time.time()
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # as long as mpiexec
        ranks: list[MpiRank] = []

        def prepare(standard: Standard) -> MpiRank:
            ranks.append(MpiRank(len(ranks), standard, rank_environments[len(ranks)]))
            return ranks[-1]

        for _ in rank_environments:
            member = MpiMember(self.attempt, prepare)
            member.common = self._said
            self.members.append(member)
        watch = self.attempt.guardian.watch
        self._starter = MpiStart(ranks, command(), self.attempt.loop, watch)
        self.attempt.starter = self._starter
        null = os.open(os.devnull, os.O_RDONLY)
        self._starter.start(mpiexec, Standard(null, *duplicates(self._said)))

    def _grace_s(self) -> float:
        """Return the time for MPI's end, in which all ranks take part: none if a rank has ended."""
        are_alive = all(m.process.pid and m.process.ending is None for m in self.members)
        return super()._grace_s() if are_alive else 0.0

    def _leave_starter(self) -> None:
        self._has_failed = any(not m.process.ending or m.process.ending.code for m in self.members)
        self._starter.end_starting()
        self._starter.leave(self._step)

    def close(self) -> None:
        """Let all processes leave; if some have not left MPI, remove the files of MPI."""
        super().close()
        self._said.close()
        if self._has_failed:  # some rank has not taken its leave of MPI
            remove_litter(self._began)

    def _step(self, until: float) -> bool:
        self.attempt.loop.step(min(until, time.monotonic() + LOOK_S))
        return False


class MpiMember(Member):
    """One rank of an :class:`MpiJob`."""

    common: IO[bytes]  # the output of mpiexec

    def tail(self) -> str:
        """Return the last output of the process, and the output of ``mpiexec``."""
        own, common = super().tail(), tail(self.common)
        return f"{own}\nmpiexec:\n{common}" if common else own
