"""A rank or the launcher is killed, or Ctrl-C comes, amid training: every process ends."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from tests.grid import slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "sddp"
SHARED = Path("/dev/shm")
OURS = "cobre-*"  # other programs come and go
RANKS = 4
END_S = 20.0  # at most, on a busy machine; no timeout of a collective is as short


class Job:
    """A training under way; its ranks are found by their environment."""

    def __init__(self):
        case = EXAMPLE / "cases" / "gen_h8_t12_k10.json"
        command = [sys.executable, "-m", "cobre_comm", "run", "-n", str(RANKS), "--backend", "shm"]
        self.shared_before = set(SHARED.glob(OURS))
        self.launcher = subprocess.Popen(
            [*command, str(EXAMPLE / "train.py"), str(case)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines = []
        self.iterating = threading.Event()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()
        assert self.iterating.wait(150), self.lines
        self.processes = psutil.Process(self.launcher.pid).children(recursive=True)
        self.pids = {}
        for process in self.processes:
            rank = process.environ().get("COBRE_SHM_RANK")
            if rank is not None and "train.py" in " ".join(process.cmdline()):
                self.pids[int(rank)] = process.pid
        assert sorted(self.pids) == list(range(RANKS))

    def _read(self):
        for line in self.launcher.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith("[0]         5 "):
                self.iterating.set()

    def await_end(self):
        """Return the exit code of the launcher; every process must end, and leave nothing."""
        began = time.monotonic()
        code = self.launcher.wait(END_S)
        while any(is_running(p) for p in self.processes) and time.monotonic() < began + END_S:
            time.sleep(0.01)
        took_s = time.monotonic() - began
        print(f"code {code}, all ended after {took_s:.2f} s", *self.lines[-2:], sep="\n")
        assert not any(is_running(p) for p in self.processes)
        self.reader.join(10)
        self.launcher.stdout.close()
        assert set(SHARED.glob(OURS)) <= self.shared_before
        return code


def is_running(process):
    """Tell zombies from the living: when the launcher is gone, process 1 reaps in its own time."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("rank", [0, slow(1), slow(2), 3])
def test_a_killed_rank(rank):
    job = Job()
    os.kill(job.pids[rank], signal.SIGKILL)
    assert job.await_end() == 128 + signal.SIGKILL
    assert f"rank {rank} was ended by signal 9 (SIGKILL)" in "\n".join(job.lines[-3:])


def test_a_killed_launcher():
    job = Job()
    job.launcher.kill()
    assert job.await_end() == -signal.SIGKILL


def test_ctrl_c():
    job = Job()
    job.launcher.send_signal(signal.SIGINT)
    assert job.await_end() == 128 + signal.SIGINT
    assert "Traceback" not in "\n".join(job.lines)
