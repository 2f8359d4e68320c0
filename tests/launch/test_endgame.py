import os
import signal
import time

from cobre_comm.processes.endgame import NEVER, Endgame
from tests.launch.command import PROGRAMS, Running, seconds_since


def test_a_failure_gives_time_for_last_words_then_ends_the_others():
    endgame = Endgame(grace_s=5.0)
    assert endgame.next_at == NEVER
    endgame.rank_failed(10.0)
    endgame.rank_failed(10.1)  # a second one changes nothing
    assert endgame.due(10.2) == []
    assert endgame.due(10.35) == [signal.SIGTERM]
    assert endgame.due(11.05) == [signal.SIGKILL]
    assert endgame.next_at == NEVER
    assert (endgame.cause, endgame.ended_by_us) == (0, 10.35)


def test_a_signal_gives_the_grace_and_a_second_one_none():
    endgame = Endgame(grace_s=5.0)
    endgame.signalled(signal.SIGINT, 10.0)
    endgame.rank_failed(10.1)  # the ranks got the signal too, and end of it
    assert endgame.due(14.9) == []
    assert endgame.due(15.1) == [signal.SIGTERM]
    endgame.signalled(signal.SIGTERM, 15.2)
    assert endgame.due(15.2) == [signal.SIGKILL]
    assert endgame.cause == signal.SIGINT


def test_ranks_that_ignore_sigterm_are_over_within_two_seconds_of_a_failure():
    with Running("run", "-n", 3, PROGRAMS / "wait.py", "python", "stubborn") as job:
        pids = job.wait_ready(3)
        start = time.monotonic()
        os.kill(pids[1][0], signal.SIGKILL)
        code, _, errors = job.finish()
        assert seconds_since(start) < 2.5
        assert code == 137
        assert "rank 1 was ended by signal 9" in errors.splitlines()[-1]
        assert job.survivors(0) == []
