"""``cobre-comm status`` shows jobs that run, that hang, or that have lost a rank."""

import os
import pathlib
import re
import signal
import sys
import time

import pytest

from tests.grid import slow
from tests.launch.command import DEADLINE_S, PATIENT, PROGRAMS, Running, cobre
from tests.launch.mpi_libraries import on

WAIT, PHASES = PROGRAMS / "wait.py", PROGRAMS / "phases.py"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def job_of(pid):
    """Return the name that the launcher gave to the job of a rank."""
    variables = pathlib.Path(f"/proc/{pid}/environ").read_text().split("\0")
    return next(v.partition("=")[2] for v in variables if v.startswith("COBRE_JOB_ID="))


def status_until(job, pattern):
    """Run the command until a pattern is in its text; return the text."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        done = cobre("status", job)
        if re.search(pattern, done.stdout):
            return done.stdout
        assert time.monotonic() < deadline, done


@pytest.mark.parametrize("name", ["shm", slow("tcp"), slow("mpi-mpich"), slow("mpi-openmpi")])
def test_a_stopped_rank_is_named(name):
    (_, kind), extra = on(name)
    with Running("run", "-n", 3, "--backend", kind, *PATIENT, WAIT, "meet", extra=extra) as job:
        pids = {rank: known[0] for rank, known in job.wait_ready(3).items()}
        os.kill(pids[1], signal.SIGSTOP)
        blamed = (
            r"waited for: rank 1, by (rank 0|rank 2|ranks 0 and 2), for [\d.]+ s; it is stopped"
        )
        said = status_until(job_of(pids[0]), blamed)
        assert f"`kill -CONT {pids[1]}` lets it go on" in said
        head, *lines = said.splitlines()
        assert head == f"job {job_of(pids[0])}: {kind}, 3 ranks"
        for rank, line in enumerate(lines[:3]):
            # either the call under way or the last one
            known = rf"  rank {rank} +pid {pids[rank]} .* #\d+ barrier\(\)"
            assert re.match(known, line)
        assert "STOPPED" in lines[1]
        os.kill(pids[1], signal.SIGCONT)


def test_the_phase_of_each_rank_is_shown_and_its_time_so_far():
    with Running("run", "-n", 2, "--backend", "shm", *PATIENT, PHASES, "late") as job:
        pids = {rank: known[0] for rank, known in job.wait_ready(2).items()}
        said = status_until(job_of(pids[0]), "waited for: rank 0, by rank 1").splitlines()
        assert re.match(
            r"  rank 0 +pid \d+ +phase late; in its own code for [\d.]+ s since #", said[1]
        )
        assert re.match(r"  rank 1 +pid \d+ +phase meet; in #\d+ barrier\(\) for [\d.]+ s", said[2])
        table = said[said.index("  least, mean and most of these ranks, by phase:") + 1 :]
        assert table[0].split() == [
            "phase", "entered", "computing", "waiting", "transferring", "imbalance",
        ]  # fmt: skip
        rows = [line.split()[0] for line in table[1:] if not line.startswith("  rank")]
        assert rows == ["forward", "backward", "late", "meet", "outside"]


def test_a_job_that_is_not_there():
    done = cobre("status", "no-such-job")
    assert (done.returncode, done.stdout) == (1, "no job of yours begins with 'no-such-job' here\n")


def test_it_looks_again_until_ctrl_c():
    with Running("status", "--watch", "no-such-job") as watch:
        for _ in range(2):
            assert watch.process.stdout.readline().startswith("no job of yours")
        watch.process.send_signal(signal.SIGINT)
        assert watch.finish()[0] == 130
