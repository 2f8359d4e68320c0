"""Ranks that one real mpiexec starts; each connects back to this process."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from cobre_comm.processes.mpi.mpiexec import find_mpiexec
from cobre_comm.testing.ranks.link import (
    OUTPUT_CHARACTERS,
    SINGLE_THREADED,
    RankLink,
    inherited_environment,
    read_report,
    send_task,
)
from cobre_comm.testing.ranks.litter import remove_litter
from cobre_comm.testing.ranks.others_process import Process
from cobre_comm.testing.ranks.outcome import Outcome

GRACE_S = 5.0  # how long MPI's end may take in ranks that are all alive
KILL_GRACE_S = 2.0  # how long mpiexec may take to end its ranks and tidy up
HELLO_S = 10.0  # from a rank's connection to its name
# There may be more ranks than cores: Open MPI gives its core away while it waits, as MPICH does.
YIELDING = {"OMPI_MCA_mpi_yield_when_idle": "1"}


class MpiJob:
    """One mpiexec and the ranks that it has started.

    Parameters
    ----------
    size : int
        Number of ranks.
    environment : mapping
        Added to this process's environment, without what would decide about backends.
    rank_environments : sequence of mapping
        Further variables of each rank, which it gets when it connects: too late for MPI's
        launcher, early enough for all that ranks import afterwards.
    survivors : bool
        Leave the other ranks alone when one has ended: mpiexec learns of it at the end of the job.
    """

    def __init__(
        self,
        size: int,
        environment: Mapping[str, str],
        rank_environments: Sequence[Mapping[str, str]],
        *,
        survivors: bool = False,
    ) -> None:
        self._began = time.time()
        mpiexec = find_mpiexec({**inherited_environment(), **YIELDING, **environment})
        self._folder = tempfile.TemporaryDirectory(prefix="cobre-ranks-")  # private: mode 0700
        self.folder = Path(self._folder.name)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.folder / "parent"))
        self.listener.listen(size)
        self.listener.setblocking(False)
        self.ranks = [MpiRank(self, r, rank_environments[r]) for r in range(size)]
        module = [sys.executable, "-m", "cobre_comm.testing.ranks.mpi_worker"]
        program = [*module, str(self.folder), "outlives" if survivors else "ends too"]
        with (self.folder / "mpiexec.txt").open("wb") as output:
            self._process = subprocess.Popen(
                mpiexec.start_command(size, program),
                env={**mpiexec.environment, **SINGLE_THREADED},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C and the end of the job are this process's affair
            )

    def accept(self) -> None:
        """Take in the ranks that have connected."""
        while True:
            try:
                accepted, _ = self.listener.accept()
            except BlockingIOError:
                return
            connection = Connection(accepted.detach())
            # Workers say who they are at once; one that dies meanwhile closes its end.
            with contextlib.suppress(EOFError, OSError):
                if connection.poll(HELLO_S):
                    rank, pid = pickle.loads(connection.recv_bytes())
                    self.ranks[rank].connected(connection, pid)

    def poll(self) -> int | None:
        """Return mpiexec's exit code, or None while it runs."""
        return self._process.poll()

    def output(self, name: str) -> str:
        """Return the end of a file in the folder of this job."""
        try:
            text = (self.folder / name).read_text(errors="replace")
        except FileNotFoundError:
            text = ""
        return text[-OUTPUT_CHARACTERS:]

    def _end(self) -> None:
        """Wait until all ranks have left, if all can; end mpiexec, or it and them."""
        alive = all(rank.is_connected for rank in self.ranks)
        for number, grace_s in (
            (0, GRACE_S if alive else 0.0),
            (signal.SIGTERM, KILL_GRACE_S),
            (signal.SIGKILL, None),
        ):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)  # and its daemons, which are in its session
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(grace_s)
                break
        for rank in self.ranks:
            rank.kill()
        if self._process.returncode != 0:  # some rank has not taken its leave of MPI
            remove_litter(self._began)

    def close(self) -> None:
        """End what is left, and give up descriptors and files; idempotent."""
        if self.listener.fileno() < 0:
            return
        self.accept()  # ranks that came too late for any body
        for rank in self.ranks:
            rank.hang_up()
        self.listener.close()
        self._end()
        self._folder.cleanup()


class MpiRank(RankLink):
    """One rank of an :class:`MpiJob`."""

    def __init__(self, job: MpiJob, rank: int, environment: Mapping[str, str]) -> None:
        self.rank = rank
        self._job = job
        self._pid = 0
        self._process: Process | None = None
        self._connection: Connection | None = None
        self._is_gone = False
        self._unsent = [pickle.dumps(dict(environment))]

    def connected(self, connection: Connection, pid: int) -> None:
        """Begin to talk to the process."""
        self._connection, self._pid = connection, pid
        self._process = Process(pid)
        for message in self._unsent:
            send_task(connection, message)
        self._unsent.clear()

    @property
    def is_connected(self) -> bool:
        """Whether its process has come and has not gone."""
        return self._pid != 0 and not self._is_gone

    @property
    def pid(self) -> int:
        """Its process id; 0 before it has connected."""
        return self._pid

    @property
    def waitable(self) -> Any:
        """Its connection, or before that what it will connect to."""
        return self._connection or self._job.listener

    def send(self, task: bytes) -> None:
        """See :meth:`RankLink.send`."""
        if self._connection is None:
            self._unsent.append(task)
        else:
            send_task(self._connection, task)

    def try_receive(self) -> Outcome | None:
        """See :meth:`RankLink.try_receive`."""
        code = self._job.poll()  # asked first: who came before the end still counts
        if self._connection is None:
            self._job.accept()
        if self._connection is None:
            return None if code is None else self._ended(code)
        if not self._connection.poll():
            return None
        outcome = read_report(self.rank, self._connection)
        if outcome is None:
            return self._ended(None)
        return self._ended(outcome.exit_code) if outcome.ended else outcome

    def _ended(self, code: int | None) -> Outcome:
        self._is_gone = True
        return Outcome(self.rank, ended=True, exit_code=code, output=self.tail())

    def tail(self) -> str:
        """See :meth:`RankLink.tail`; with what mpiexec says."""
        own, common = (self._job.output(f"{name}.txt") for name in (f"rank-{self.rank}", "mpiexec"))
        return f"{own}\nmpiexec:\n{common}" if common else own

    def signal(self, number: int) -> None:
        """See :meth:`RankLink.signal`."""
        if self._process is not None:
            self._process.signal(number)

    def kill(self) -> None:
        """See :meth:`RankLink.kill`."""
        if self._process is not None:
            self._process.kill()
        self._is_gone = True

    def hang_up(self) -> None:
        """See :meth:`RankLink.hang_up`."""
        if self._connection is not None:
            self._connection.close()

    def close(self) -> None:
        """End the job, of which this is a part."""
        self._job.close()
