"""Launchers in any surroundings: how they end, what they print last, and that nothing is left.

A surrounding is what a process inherits: blocked and ignored signals, closed and broken streams,
limits, a directory that was removed, a terminal.
"""

import contextlib
import itertools
import os
import signal
import sys
import uuid

import psutil
import pytest

from cobre_comm.processes.port import ReservedPort
from cobre_comm.testing.cases.waiting import wait_until
from cobre_comm.testing.pairwise import choose
from tests.launch.command import COMMAND, PROGRAMS, Running, cobre
from tests.launch.mpi_libraries import needs
from tests.launch.programs.surround import SURROUNDINGS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
SURROUNDED = PROGRAMS / "surrounded.py"
MARK = "COBRE_TEST_MARK"
ENDS = {
    "well": (0, ""),
    "fails": (3, "cobre-comm: rank 0 exited with code 3"),
    "killed": (128 + signal.SIGKILL, "cobre-comm: rank 0 was ended by signal 9 (SIGKILL)"),
}
LAUNCHED = {
    "well": "sums [3, 3]",
    "fails": "rank 0 ended with 3",
    "killed": f"rank 0 ended with -{int(signal.SIGKILL)}",
}
UNHEARD = ("no stderr", "no standard stream", "stderr is full", "nobody reads stderr")
FACTORS = {"surrounding": list(SURROUNDINGS), "launcher": ["run", "launch", "machines", "mpi"],
           "end": list(ENDS)}  # fmt: skip


def table():
    """Return all combinations: a few that have all pairs of values, and the rest, marked slow."""
    found = []
    rows = [dict(zip(FACTORS, row, strict=True)) for row in itertools.product(*FACTORS.values())]
    usual = choose(rows)
    for number, row in enumerate(rows):
        marks = () if number in usual else pytest.mark.slow
        found.append(pytest.param(*row.values(), marks=marks, id="-".join(row.values())))
    return found


def within(surrounding, *words, **rest):
    """Run a program of Python to its end, in the surroundings that have this name."""
    before = [sys.executable, PROGRAMS / "surround.py", surrounding, sys.executable]
    return cobre(*words, before=[*map(str, before)], **rest)


def run_one(launcher, surrounding, end, folder, extra):
    """Run a job; return its exit status and the last line that it printed."""
    if launcher == "launch":
        said = folder / "said"
        done = within(surrounding, SURROUNDED, "launch", said, end, **extra)
        assert said.exists(), done.stderr
        return done.returncode, said.read_text()
    words = [*COMMAND[1:], "run", "-n", 2]
    if launcher == "mpi":
        words += ["--backend", "mpi"]
    with contextlib.ExitStack() as stack:
        if launcher == "machines":
            words[-1] = 1
            port = stack.enter_context(ReservedPort()).port
            place = "--nnodes", 2, "--coordinator", f"127.0.0.1:{port}"
            words += [*place, "--node-rank"]
            other = *words[2:], 1, SURROUNDED, end
            stack.enter_context(Running(*other, extra=extra))
            words += [0]
        done = within(surrounding, *words, SURROUNDED, end, **extra)
    return done.returncode, (done.stderr.splitlines() or [""])[-1]


def marked(mark):
    """Return the processes that run with this test's variable in their environment."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@pytest.mark.parametrize(("surrounding", "launcher", "end"), table())
def test_a_job_ends_as_it_should(surrounding, launcher, end, tmp_path):
    chosen = needs("mpich") if launcher == "mpi" else {}
    token = "a1" * 32 if launcher == "machines" else ""
    extra = {MARK: uuid.uuid4().hex, **chosen} | ({"COBRE_TCP_TOKEN": token} if token else {})
    code, last = run_one(launcher, surrounding, end, tmp_path, extra)
    if launcher == "launch":
        # If SIGCHLD is ignored, nobody learns how rank 0 was killed.
        is_reaped = (surrounding, end) == ("SIGCHLD ignored", "killed")
        assert (code, last) == (0, "rank 0 ended with None" if is_reaped else LAUNCHED[end])
    else:
        expected, sentence = ENDS[end]
        assert code == expected, last
        if surrounding not in UNHEARD:
            is_quiet = last == "" or last.startswith("[mpiexec]")  # MPICH prints this line
            assert last.startswith(sentence) if sentence else is_quiet
    wait_until(lambda: not marked(extra[MARK]))
    left = marked(extra[MARK])
    with contextlib.ExitStack() as stack:
        for process in left:
            stack.callback(os.kill, process.pid, signal.SIGKILL)
        assert left == []
