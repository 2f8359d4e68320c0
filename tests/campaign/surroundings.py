"""What surrounds a job: /dev/shm and child processes, which show what the job leaves behind."""

import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import time

import psutil

from cobre_comm.testing.ranks.litter import PATTERNS
from tests.forked import die_with_parent

PR_SET_CHILD_SUBREAPER = 36
SHM = pathlib.Path("/dev/shm")
PATIENCE_S = 3.0  # a process that has lost its rank or its launcher ends within this time
_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans():
    """Become the parent of each descendant when the descendant's own parent ends."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def names():
    """Return the names in /dev/shm, without the files that an MPI leaves."""
    litter = {path for pattern in PATTERNS for path in SHM.glob(pattern)}
    return {path.name for path in SHM.iterdir() if path not in litter}


def await_no_children(known, patience_s):
    """End known processes, and await the end of all children; end and name children that stay."""
    for pid in known:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    this, until = psutil.Process(), time.monotonic() + patience_s
    while (left := this.children()) and time.monotonic() < until:
        psutil.wait_procs(left, timeout=0.01)
    told = tuple(f"{each.pid} {each.name()}" for each in left)
    for each in left:
        each.kill()
    psutil.wait_procs(left)
    return told


def stretch():
    """Return the elapsed time divided by the CPU time of a busy process: 1 on a quiet machine."""
    wall, own = time.monotonic(), time.process_time()
    while time.process_time() - own < 0.3:
        sum(range(1000))
    return (time.monotonic() - wall) / 0.3


def busy(count):
    """Start processes that compute without end."""
    code = "while True: pass"
    return [subprocess.Popen(["python3", "-c", code], preexec_fn=die_with_parent)
            for _ in range(count)]  # fmt: skip
