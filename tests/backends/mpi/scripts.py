"""Run programs under a real mpiexec, as a user does; return their output, and how a job ends."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest

from cobre_comm.processes.mpi.mpiexec import find_mpiexec
from cobre_comm.testing.cases.waiting import wait_until
from cobre_comm.testing.ranks.litter import remove_litter, unused_files
from cobre_comm.testing.ranks.surroundings import inherited_environment
from tests.grid import why_not

LIBRARIES = ["openmpi", "mpich"]


@dataclass
class Ended:
    """The end of a job: exit status, output and time."""

    code: int
    out: str
    err: str
    took_s: float


def run_script(library, size, script, *args, env=None, options=(), timeout_s=60.0):
    """Run Python source on some ranks under mpiexec; no process outlives the time limit."""
    if why_not(library):
        pytest.skip(f"mpi-{library}: {why_not(library)}")
    chosen = {"MPI4PY_MPIABI": library, "COBRE_COMM_BACKEND": "mpi", **(env or {})}
    mpiexec = find_mpiexec({**inherited_environment(), **chosen})
    program = [*options, sys.executable, "-c", script, *map(str, args)]
    began, made = time.monotonic(), time.time()
    job = subprocess.Popen(
        mpiexec.start_command(size, program),
        env=dict(mpiexec.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = job.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        job.terminate()  # mpiexec then ends its ranks
        try:
            out, err = job.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            out, err = job.communicate()
        pytest.fail(f"still running after {timeout_s} s:\n{out}\n{err}")
    ended = Ended(job.returncode, out, err, time.monotonic() - began)
    if job.returncode != 0:
        remove_litter(made)
    return ended


def left_since(before, library):
    """Return orphans that are not in ``before`` and stay; orphans of other jobs disappear."""
    # It is enough that there is no new orphan at one moment: later another worker of pytest may
    # begin a job, and the files of that job are no orphans of this test.
    has_none = wait_until(lambda: orphans(library) <= before)
    return set() if has_none else orphans(library) - before


def orphans(library):
    """Return files in shared memory, ours or of this MPI, that no process has mapped."""
    patterns = {"mpich": ["mpich*"], "openmpi": ["*sm_segment*", "*osc*"]}[library]
    return set().union(*(unused_files(pattern) for pattern in ["cobre-*", *patterns]))
