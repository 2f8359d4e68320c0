import os
import re
import signal
import sys
import time

import psutil
import pytest

from tests.launch.command import PROGRAMS, SOON_S, Running

ACT = PROGRAMS / "act.py"


def test_terminal_sends_ctrl_c_to_the_launcher_alone():
    with Running("run", "-n", 2, ACT, "sleep") as job:
        pids = job.wait_ready(2)
        groups = {os.getpgid(pid) for [pid] in pids.values()}
        assert os.getpgid(job.process.pid) not in groups
        assert len(groups) == 2
        job.process.send_signal(signal.SIGINT)
        code, _, errors = job.finish()
        assert code == 130
        assert errors.count("KeyboardInterrupt") == 1
        assert "the last words of ranks 0 and 1:\n    Traceback" in errors


def test_second_ctrl_c_kills_at_once():
    with Running("run", "-n", 2, "--grace", 60, ACT, "stubborn") as job:
        job.wait_ready(2)
        job.process.send_signal(signal.SIGINT)
        job.wait_for("heard 2", 2)
        assert job.process.poll() is None
        job.process.send_signal(signal.SIGINT)
        code, _, errors = job.finish(SOON_S)
        assert code == 130
        waited_s = re.search(r"still running after ([\d.]+) s, killed: ranks 0 and 1", errors)
        assert float(waited_s[1]) < 60  # less than the grace, which the second signal has cut short
        assert job.survivors() == []


def test_ranks_that_do_not_end_are_killed_after_the_grace():
    with Running("run", "-n", 2, "--grace", "0.3", ACT, "stubborn") as job:
        job.wait_ready(2)
        job.process.send_signal(signal.SIGINT)
        code, _, errors = job.finish()
        assert code == 130
        assert "still running after 0.3 s, killed: ranks 0 and 1" in errors
        assert job.survivors() == []


@pytest.fixture
def hang_up_ends():
    """Let SIGHUP end ranks, which under ``nohup`` would inherit that the signal is ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hang_up_ends")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_ending_signals_end_ranks_that_do_nothing_about_them(number):
    with Running("run", "-n", 2, ACT, "sleep") as job:
        job.wait_ready(2)
        job.process.send_signal(number)
        code, _, errors = job.finish()
        assert code == 128 + number
        assert errors.splitlines()[-1].startswith(f"cobre-comm: ended by signal {int(number)}")
        assert job.survivors() == []


def test_ranks_own_children_end_with_the_job():
    with Running("run", "-n", 2, ACT, "children") as job:
        job.wait_ready(2)
        assert len(job.started) >= 4
        job.process.send_signal(signal.SIGTERM)
        job.finish()
        assert job.survivors() == []


@pytest.mark.parametrize(
    ("where", "backend", "size", "to_rank"), [("njit", "shm", 2, None), ("python", "tcp", 3, 1)]
)
def test_a_signal_asks_all_ranks_to_stop_after_the_same_collective(where, backend, size, to_rank):
    """The signal goes to the launcher, or to one rank."""
    words = "run", "-n", size, "--backend", backend, PROGRAMS / "stops.py", where
    with Running(*words, extra={"COBRE_COMM_GRACEFUL": "SIGTERM, SIGUSR1"}) as job:
        pids = job.wait_ready(size)
        time.sleep(0.5)
        if to_rank is None:
            job.process.send_signal(signal.SIGTERM)
        else:
            os.kill(pids[to_rank][0], signal.SIGUSR1)
        code, output, errors = job.finish()
        assert (code, errors) == (0, "")
        rounds = re.findall(r"rounds (\d+)", output)
        assert len(rounds) == size
        assert len(set(rounds)) == 1


def test_a_second_signal_ends_a_job_that_was_asked_to_stop():
    words = "run", "-n", 2, "--grace", "0.3", ACT, "stubborn"
    with Running(*words, extra={"COBRE_COMM_GRACEFUL": "SIGTERM"}) as job:
        job.wait_ready(2)
        job.process.send_signal(signal.SIGTERM)
        job.wait_for("heard 15", 2)
        time.sleep(0.5)  # more than the grace
        assert job.process.poll() is None
        job.process.send_signal(signal.SIGTERM)
        assert job.finish()[0] == 128 + signal.SIGTERM


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/*/children")
@pytest.mark.parametrize("after_s", [0.08, 0.12, 0.16, 0.2, 0.3, 0.6])
def test_launcher_killed_while_it_starts(after_s):
    with Running("run", "-n", 6, PROGRAMS / "meet.py") as job:
        deadline = time.monotonic() + after_s
        seen = {}
        while time.monotonic() < deadline:
            for child in psutil.Process(job.process.pid).children():
                seen[child.pid] = child
            time.sleep(0.01)
        # so that no child is started after the list is made
        os.kill(job.process.pid, signal.SIGSTOP)
        seen |= {c.pid: c for c in psutil.Process(job.process.pid).children(recursive=True)}
        job.started = list(seen.values())
        job.process.kill()
        assert job.survivors() == []
