"""Pools of forked ranks; a forked rank has all modules that a body imports from the beginning.

A started rank of a pool takes half a second of CPU to import numba and the cases. The table of
cases needs some sixty ranks over shared memory and sockets, and does not try how a rank starts. So
these ranks are forks of pytest's process. The ranks of an MPI are still started by its mpiexec.
"""

import atexit
import os
import sys
import warnings

import numba

from cobre_comm.processes.exec_shim import let_signals_come
from cobre_comm.processes.rank import RankProcess
from cobre_comm.reports import raised
from cobre_comm.testing.backend_name import BackendName
from cobre_comm.testing.plugin import Pools
from cobre_comm.testing.ranks import bodies, compile_once
from cobre_comm.testing.ranks.members import RankJob
from cobre_comm.testing.ranks.pool import RankPool
from cobre_comm.testing.ranks.start_job import start_job
from tests.forked import become_alone, exit_code, load, start


class Forked:
    """A forked process, in place of a `subprocess.Popen`, that serves bodies of tests."""

    def __init__(self, command, cpus, *, env, stdin, stdout, stderr, pass_fds, **options):
        self.returncode = None
        sys.stdout.flush()
        sys.stderr.flush()
        standard = stdin, stdout, stderr
        self.pid = start(lambda: be_rank(env, standard, pass_fds))

    def poll(self):
        return self._wait(os.WNOHANG)

    def wait(self):
        return self._wait(0)

    def _wait(self, options):
        if self.returncode is None:
            try:
                ended, status = os.waitpid(self.pid, options)
            except ChildProcessError:  # another thread's wait has taken the exit code
                ended, status = self.pid, 0
            self.returncode = os.waitstatus_to_exitcode(status) if ended else None
        return self.returncode


def be_rank(env, standard, kept):
    """Leave what belongs to pytest, and be a rank; return the exit code."""
    let_signals_come(set())
    become_alone(*standard, kept=kept)
    os.environ.clear()
    os.environ.update(env)
    # An earlier test may have started numba's threads; after that their number cannot change.
    os.environ["NUMBA_NUM_THREADS"] = str(numba.config.NUMBA_NUM_THREADS)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, closefd=False)  # noqa: SIM115  # open as long as the process lives
        for number, mode in enumerate(("r", "w", "w"))
    )
    sys.excepthook = sys.__excepthook__
    warnings.resetwarnings()
    compile_once._lock_file.cache_clear()  # the descriptors in this cache have been closed
    atexit._clear()
    atexit.register(raised.end_all_at_exit)
    return exit_code(bodies.main)


class ForkedRank(RankProcess):
    begin = Forked


class ForkedJob(RankJob):
    rank_process = ForkedRank


class ForkedPool(RankPool):
    def _start(self):
        load()
        return start_job(self.backend, self._env, [{} for _ in range(self.size)], ForkedJob)


class ForkedPools(Pools):
    """Pools of forked ranks, except for the ranks of an MPI."""

    def _new(self, backend, size):
        is_mpi = BackendName.parse(backend).is_mpi
        return super()._new(backend, size) if is_mpi else ForkedPool(backend, size)
