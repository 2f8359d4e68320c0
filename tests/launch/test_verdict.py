import re
import time

import pytest

from cobre_comm.errors import CollectiveFailed
from cobre_comm.processes.endings import (
    End,
    describe,
    exit_status,
    first_failure,
    last_lines,
    tells_of_lost_peer,
)
from tests.launch.command import PROGRAMS, Running, cobre, lines_of, seconds_since

ACT, MEET = PROGRAMS / "act.py", PROGRAMS / "meet.py"


@pytest.mark.parametrize(
    ("action", "status", "words"),
    [
        ("exit", 3, "rank 1 exited with code 3"),
        ("kill", 137, "rank 1 was ended by signal 9 (SIGKILL); signal 9 is also what the kernel's"),
        ("segfault", 139, "rank 1 was ended by signal 11 (SIGSEGV)"),
    ],
)
def test_first_failure_ends_the_job_with_its_code(action, status, words):
    with Running("run", "-n", 3, ACT, action, 1) as job:
        job.wait_ready(2)
        start = time.monotonic()
        code, _, errors = job.finish()
        assert seconds_since(start) < 3
        assert code == status
        assert errors.splitlines()[-1].startswith(f"cobre-comm: {words}")
        assert job.survivors(0) == []


def test_one_rank_alone_has_its_code_too():
    done = cobre("run", "-n", 1, ACT, "exit", 0)
    assert done.returncode == 3
    assert done.stderr == "cobre-comm: rank 0 exited with code 3\n"


def test_traceback_comes_last():
    done = cobre("run", "-n", 3, ACT, "raise", 2)
    assert done.returncode == 1
    *_, traceback, verdict = done.stderr.splitlines()
    assert traceback == "    ValueError: bad number on rank 2"
    assert verdict == "cobre-comm: rank 2 exited with code 1"


def test_a_rank_may_finish_before_the_others():
    done = cobre("run", "-n", 3, ACT, "finish", 0)
    assert (done.returncode, done.stderr) == (0, "")
    assert lines_of(done.stdout, 1) == lines_of(done.stdout, 2) == ["still here"]


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_killed_rank_is_the_cause_and_the_others_say_so(rank):
    done = cobre("run", "-n", 3, MEET, "kill", rank)
    assert done.returncode == 137
    assert done.stderr.splitlines()[-1].startswith(f"cobre-comm: rank {rank} was ended by signal 9")
    assert re.search(rf"\[[012]\] .*CollectiveFailed: .*rank {rank} died", done.stderr)


@pytest.mark.parametrize("rank", [0, 2])
def test_a_raised_error_is_the_cause_and_not_the_loss_of_its_rank(rank):
    done = cobre("run", "-n", 3, MEET, "raise", rank)
    assert done.returncode == 1
    *_, traceback, verdict = done.stderr.splitlines()
    assert traceback == "    ValueError: the first cause"
    assert verdict == f"cobre-comm: rank {rank} exited with code 1"


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_rank_killed_before_all_have_attached(backend):
    done = cobre("run", "-n", 3, "--backend", backend, "-m", "tests.launch.programs.early")
    assert done.returncode == 137


def test_rules_of_the_verdict():
    assert first_failure([End(0, 0, 1.0)]) is None
    secondary, killed = End(0, 1, 1.0, secondary=True), End(1, -9, 1.1)
    assert first_failure([secondary, killed]) is killed
    assert first_failure([End(0, 1, 1.0), End(1, -9, 1.0)]).rank == 1
    assert first_failure([End(0, 1, 1.0), End(1, 1, 0.5)]).rank == 1
    assert exit_status(-15) == 143
    assert describe(End(2, 5, 0.0)) == "rank 2 exited with code 5"
    lost = CollectiveFailed("barrier", 0, "rank 1 died, while others waited for it", [1])
    assert tells_of_lost_peer(str(lost))
    assert not tells_of_lost_peer("ValueError: no")


def test_last_lines_begin_with_the_traceback_and_skip_progress_bars():
    tail = b"noise\n 10%\r 20%\r\nTraceback (most recent call last):\n  File\nValueError: x\n"
    assert last_lines(tail) == ["Traceback (most recent call last):", "  File", "ValueError: x"]
    assert last_lines(b"10%\r20%\r30%\n") == ["30%"]
