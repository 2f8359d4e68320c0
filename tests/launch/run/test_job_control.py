"""Jobs of an interactive shell on a terminal: stopped, continued, and in the background."""

import contextlib
import os
import pty
import re
import select
import shutil
import signal
import sys
import time

import psutil
import pytest

from cobre_comm.testing.cases.waiting import wait_until
from tests.grid import slow
from tests.launch.command import COMMAND, PROGRAMS, SOON_S, environment
from tests.launch.mpi_libraries import on

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks at the states of processes"),
    pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash"),
]
CTRL_C, CTRL_Z = b"\x03", b"\x1a"
READS = PROGRAMS / "reads.py"
LAUNCHES = """
import os, pathlib, sys, time
from cobre_comm import launch

def work(comm):
    over = pathlib.Path(sys.argv[1])
    over.with_name(f"draft-{comm.rank}").write_text(str(os.getpid()))
    over.with_name(f"draft-{comm.rank}").rename(over.with_name(f"ready-{comm.rank}"))
    while not over.exists():
        time.sleep(0.02)

if __name__ == "__main__":
    launch(work, 2)
"""


class Shell:
    """An interactive bash, which leads a session with a terminal of its own."""

    def __init__(self):
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            words = ["bash", "--norc", "--noprofile", "-i"]
            os.execvpe("bash", words, environment(PS1="$ ", TERM="dumb", HISTFILE=""))
        self._said = ""

    def type(self, text):
        os.write(self._terminal, text if isinstance(text, bytes) else f"{text}\n".encode())

    def await_text(self, pattern):
        """Return the match of a pattern in the output; forget all output up to the match's end."""
        deadline = time.monotonic() + SOON_S
        while not (found := re.search(pattern, self._said)):
            left_s = deadline - time.monotonic()
            assert left_s > 0, f"no {pattern!r} in {self._said!r}"
            if select.select([self._terminal], [], [], left_s)[0]:
                self._said += os.read(self._terminal, 2**16).decode(errors="replace")
        self._said = self._said[found.end() :]
        return found

    def run(self, folder, *words, end=""):
        """Type a command of two ranks; return both ranks when each rank has written its file."""
        self.type(" ".join(map(str, words)) + end)
        files = [folder / f"ready-{rank}" for rank in range(2)]
        assert wait_until(lambda: all(file.exists() for file in files))
        return [psutil.Process(int(file.read_text())) for file in files]

    def close(self):
        for process in psutil.Process(self.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._terminal)


@pytest.fixture
def shell():
    with contextlib.closing(Shell()) as started:
        yield started


def await_states(processes, *, are_stopped):
    stopped = psutil.STATUS_STOPPED
    assert wait_until(lambda: all((p.status() == stopped) == are_stopped for p in processes))


@pytest.mark.parametrize("launcher", ["run", "launch"])
def test_ranks_stop_and_continue_with_the_launcher(launcher, shell, tmp_path):
    over, program = tmp_path / "over", tmp_path / "launches.py"
    program.write_text(LAUNCHES)
    run = *COMMAND, "run", "-n", 2, READS, over, "sleep"
    ranks = shell.run(tmp_path, *(run if launcher == "run" else (COMMAND[0], program, over)))
    for continue_by in ("fg", "bg"):
        shell.type(CTRL_Z)
        shell.await_text("Stopped")
        await_states(ranks, are_stopped=True)
        shell.type(continue_by)
        await_states(ranks, are_stopped=False)
    over.touch()
    shell.type("wait; echo status $?")
    shell.await_text("status 0")


@pytest.mark.parametrize("backend", ["shm", slow("mpi-mpich"), slow("mpi-openmpi")])
def test_a_job_in_the_background_takes_no_line_of_the_shell(shell, backend, tmp_path):
    option, variables = on(backend)
    told = [f"{name}={value}" for name, value in variables.items()]
    run = "run", "-n", 2, *option, READS, tmp_path / "over"
    ranks = shell.run(tmp_path, *told, *COMMAND, *run, end=" &")
    await_states(ranks, are_stopped=True)
    shell.type("echo the shell has $((40 + 2))")
    shell.await_text("the shell has 42")
    shell.type("jobs")
    shell.await_text("Stopped")
    shell.type("fg")
    await_states(ranks, are_stopped=False)
    shell.type("one")
    shell.await_text("got one")
    shell.type(CTRL_Z)  # while rank 0 reads from the terminal
    shell.await_text("Stopped")
    await_states(ranks, are_stopped=True)
    shell.type("fg")
    shell.type("two")
    shell.await_text("got two")
    shell.type("end")
    shell.type("echo status $?")
    shell.await_text("status 0")


def test_ctrl_c_while_rank_0_reads_ends_the_job(shell, tmp_path):
    shell.run(tmp_path, *COMMAND, "run", "-n", 2, READS, tmp_path / "over")
    shell.type("one")
    shell.await_text("got one")
    shell.type(CTRL_C)
    shell.await_text("cobre-comm: ended by signal 2")
    shell.type("echo status $?")
    shell.await_text("status 130")
