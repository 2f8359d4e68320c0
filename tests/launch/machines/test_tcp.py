"""Jobs over sockets, on one machine and on two launchers that stand for two machines."""

import pathlib
import re
import signal
import sys

import psutil
import pytest

from cobre_comm import launch
from tests.launch.command import (
    COMMAND,
    DEADLINE_S,
    EXAMPLES,
    PROGRAMS,
    Running,
    at_once,
)
from tests.launch.workers.bodies import add, surroundings

ACT, MEET = PROGRAMS / "act.py", PROGRAMS / "meet.py"
HELLO = EXAMPLES / "hello_ranks.py"
COLD = {"NUMBA_DISABLE_JIT": "1"}  # programs that make no communicator need no kernels


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_token_is_in_no_command_line_and_in_no_output():
    with Running("run", "--backend", "tcp", "-n", 2, ACT, "sleep", extra=COLD) as job:
        pids = job.wait_ready(2)
        variables = pathlib.Path(f"/proc/{pids[0][0]}/environ").read_text().split("\0")
        [token] = [v.split("=", 1)[1] for v in variables if v.startswith("COBRE_TCP_TOKEN=")]
        everyone = [psutil.Process(job.process.pid), *job.started]
        assert len(everyone) >= 4  # a launcher, a guardian, and the ranks
        for process in everyone:
            assert token not in " ".join(process.cmdline())
        job.process.send_signal(signal.SIGTERM)
        _, output, errors = job.finish()
        assert token not in output + errors


def test_launch_over_sockets(monkeypatch):
    result = launch(add, 2, backend="tcp", args=(10,))
    assert result.value == 30.0
    assert {worker.backend for worker in result.workers} == {"tcp"}
    monkeypatch.setenv("COBRE_TCP_COORDINATOR", "there")
    told = launch(surroundings, 2, timeout=12).value
    assert told["COBRE_COMM_BACKEND"] == "tcp"
    assert told["COBRE_TCP_COORDINATOR"] == "127.0.0.1"
    assert told["COBRE_TCP_TIMEOUT_SECS"] == "12"
    assert launch(add, 1, args=(1,)).workers[0].backend == "local"


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 3])
def test_a_killed_rank_ends_the_job_on_both_nodes(machine, killed):
    jobs = [machine(node, MEET, killed, ranks=2) for node in (0, 1)]
    ends = [job.finish() for job in jobs]
    here, there = ends[killed // 2], ends[1 - killed // 2]
    assert here[0] == 137
    assert here[2].splitlines()[-1].startswith(f"cobre-comm: rank {killed} was ended by signal 9")
    assert there[0] == 1
    *words, last = there[2].splitlines()
    assert re.search(rf"CollectiveFailed: .*rank {killed} died", "\n".join(words))
    assert words[-1].strip().startswith(f"rank {killed}, its last calls: ")
    assert re.fullmatch(r"cobre-comm: rank \d exited with code 1", last)
    assert all(job.survivors() == [] for job in jobs)


@pytest.mark.slow
def test_fifty_jobs_at_once():
    command = [*COMMAND, "run", "--backend", "tcp", "-n", "2", "--no-prefix", str(HELLO)]
    jobs = at_once(command, [{}] * 50, within_s=2 * DEADLINE_S)
    assert [job.returncode for job in jobs] == [0] * 50, jobs
    assert all("2 ranks, whose numbers add up to 1" in job.stdout for job in jobs)
