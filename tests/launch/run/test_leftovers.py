"""Shared memory that a user's processes leave behind is removed, whatever ends the job."""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

from cobre_comm.processes.attempt import Attempt
from cobre_comm.processes.guardian import ASKED_S, end_groups
from cobre_comm.processes.job import Job
from cobre_comm.processes.rank import RankProcess, Standard
from cobre_comm.testing.cases.waiting import wait_until
from tests.launch.command import COMMAND, PROGRAMS, SOON_S, Running

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /dev/shm")
LEAVES = PROGRAMS / "leaves.py"
RUN = [*COMMAND, "run", "-n", "2", "--grace", "0.3", LEAVES, "run"]
LAUNCH = [sys.executable, LEAVES, "launch"]


def memory_of(name):
    return [path.name for path in pathlib.Path("/dev/shm").glob(f"{name}-*")]


def memory_that_stays(name):
    wait_until(lambda: not memory_of(name))
    return memory_of(name)


@pytest.mark.parametrize(
    ("launcher", "method", "end"),
    [
        (RUN, "spawn", "exit"),
        (RUN, "spawn", signal.SIGTERM),
        (RUN, "fork", signal.SIGTERM),
        (RUN, "spawn", signal.SIGKILL),
        (LAUNCH, "spawn", "exit"),
        (LAUNCH, "spawn", signal.SIGINT),
        (LAUNCH, "fork", signal.SIGKILL),
    ],
    ids=str,
)
def test_no_shared_memory_of_the_users_stays(launcher, method, end):
    name = f"left-{os.getpid()}-{time.monotonic_ns()}"
    with Running(name, method, end, before=[*map(str, launcher)]) as job:
        if end == "exit":
            job.finish(SOON_S)
        else:
            job.wait_ready(2)
            job.process.send_signal(end)
            job.process.wait(SOON_S)
        try:
            stays = memory_that_stays(name) if end == signal.SIGKILL else memory_of(name)
            assert stays == []
        finally:
            for left in memory_of(name):
                pathlib.Path("/dev/shm", left).unlink()
        assert job.survivors() == []


@pytest.fixture
def reaped():
    """Return an attempt whose only rank has ended; this test has reaped it, not the attempt."""
    attempt = Attempt(Job(1, "local"), print)
    attempt.add(RankProcess(0, [sys.executable, "-c", ""], os.environ, Standard()))
    os.waitpid(attempt.ranks[0].pid, 0)
    return attempt


def test_a_rank_that_ends_and_is_reaped_as_it_gets_a_signal_is_no_error(reaped, monkeypatch):
    """If SIGCHLD is ignored, a rank's pid may be free between the poll and the signal."""
    [rank] = reaped.ranks
    monkeypatch.setattr(rank, "exit_code", lambda: None)
    try:
        rank.signal(signal.SIGTERM, group=False)
    finally:
        reaped.close()


def test_another_process_that_has_got_the_number_of_a_rank_is_left_alone(reaped):
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE,
                             start_new_session=True)  # fmt: skip
    [rank] = reaped.ranks
    reaped.look()
    rank.pid = other.pid
    reaped.close()
    other.communicate(b"\n")
    assert other.returncode == 0


def test_a_rank_outlives_the_thread_that_has_started_it():
    """A child that is tied to its parent ends with the thread that has started the child."""
    (orders, send), (hear, said) = os.pipe(), os.pipe()
    began = []

    def begin():
        standard = Standard(orders, said)
        began.append(RankProcess(0, ["/bin/cat"], os.environ, standard, reports=False))
        os.write(send, b"1")
        began.append((os.read(hear, 1), threading.get_native_id()))

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    rank, (first, number) = began
    wait_until(lambda: not pathlib.Path(f"/proc/self/task/{number}").exists())
    assert rank.exit_code() is None
    os.write(send, b"2")
    assert (first, os.read(hear, 1)) == (b"1", b"2")
    os.close(send)
    rank.reap()
    os.close(hear)


def test_groups_that_are_empty_cost_no_wait():
    child = os.fork()
    if child == 0:
        os.setsid()
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # it is a zombie, and alone in its group
    waits = []
    end_groups([child], waits.append)
    os.waitpid(child, 0)
    assert waits == []


def test_a_process_that_does_not_end_is_killed_after_a_while():
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.setsid()
        while True:
            time.sleep(60)
    while os.getpgid(child) != child:
        time.sleep(0.01)
    began = time.monotonic()
    end_groups([child], lambda until: time.sleep(max(0.0, until - time.monotonic())))
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert time.monotonic() - began > ASKED_S / 2
