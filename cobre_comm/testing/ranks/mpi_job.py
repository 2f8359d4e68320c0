"""The processes of a job that a real ``mpiexec`` starts."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO

from cobre_comm.processes.mpi.mpiexec import find_mpiexec
from cobre_comm.processes.mpi.start import MpiStart
from cobre_comm.processes.rank import RankProcess, Standard
from cobre_comm.testing.ranks.litter import remove_litter
from cobre_comm.testing.ranks.members import (
    SINGLE_THREADED,
    Member,
    RankJob,
    command,
    duplicates,
    tail,
)
from cobre_comm.testing.ranks.outcome import Outcome
from cobre_comm.testing.ranks.surroundings import inherited_environment, scaled_limit

# Makes Open MPI yield its core while it waits, because there may be more ranks than cores.
YIELDING = {"OMPI_MCA_mpi_yield_when_idle": "1"}
LOOK_S = 0.02


class MpiJob(RankJob):
    """One ``mpiexec`` and the ranks that it has started.

    ``mpiexec`` gets ``environment``, and the environment of this process without the variables that
    configure backends. Only the ranks get the variables of ``rank_environments``.
    """

    def __init__(
        self, environment: Mapping[str, str], rank_environments: Sequence[Mapping[str, str]]
    ) -> None:
        mpiexec = find_mpiexec(
            {**inherited_environment(), **YIELDING, **SINGLE_THREADED, **environment}
        )
        super().__init__("mpi", len(rank_environments))
        self._own = rank_environments
        self._began = time.time()
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # open until `close`
        standard = Standard(os.open(os.devnull, os.O_RDONLY), *duplicates(self._said))
        loop, watch = self.attempt.loop, self.attempt.guardian.watch
        self._starter = MpiStart(mpiexec, len(self._own), standard, loop, self._begin, watch)
        self.attempt.starter = self._starter

    def _begin(self, rank: int, environment: dict[str, str], inherited: tuple[int, ...]) -> None:
        def start(standard: Standard) -> RankProcess:
            standard = standard._replace(others=inherited)
            return RankProcess(rank, command(), {**environment, **self._own[rank]}, standard)

        member = MpiMember(self.attempt, start)
        member.common = self._said
        self.members.append(member)
        self.members.sort(key=lambda member: member.rank)

    def run(self, orders: Sequence[bytes], timeout_s: float) -> list[Outcome]:
        """Run a body on each rank when all have begun; else report how ``mpiexec`` ended."""
        self._step_until(lambda: not self._starter.is_starting, scaled_limit(timeout_s))
        if self._have_begun:
            return super().run(orders, timeout_s)
        ending, said = self._starter.ending, f"mpiexec:\n{tail(self._said)}"
        if ending is None:
            return [Outcome(rank, timed_out=True, output=said) for rank in range(len(orders))]
        code = ending.code
        return [Outcome(r, ended=True, exit_code=code, output=said) for r in range(len(orders))]

    @property
    def _have_begun(self) -> bool:
        return len(self.members) == len(self._own)

    def _grace_s(self) -> float:
        """Return the time for MPI_Finalize, which needs all ranks: 0 s if a rank has ended."""
        are_alive = self._have_begun and len(self.attempt.running) == len(self.members)
        return super()._grace_s() if are_alive else 0.0

    def _leave_starter(self) -> None:
        ended_well = [ending for ending in self.attempt.endings if ending.code == 0]
        self._has_failed = len(ended_well) < len(self._own)
        self._starter.end_starting()
        self._starter.leave(self._step)

    def close(self) -> None:
        """Let all processes leave; if one did not finalize MPI, remove the files of MPI."""
        super().close()
        self._said.close()
        if self._has_failed:  # some rank may not have finalized MPI
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
