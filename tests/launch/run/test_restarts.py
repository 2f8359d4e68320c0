import os
import re
import signal
import sys

import pytest

from cobre_comm.processes.restarts import AttemptEnding, Restarts, check_restarts
from tests.launch.command import PROGRAMS, SOON_S, Running, cobre

RESTARTS = PROGRAMS / "restarts.py"
# A launcher for which every attempt counts as ended at once, however long the attempt lasts.
AT_ONCE = [sys.executable, "-c", "from cobre_comm import cli; from cobre_comm.processes import "
           "restarts; restarts.AT_ONCE_S = 1e9; raise SystemExit(cli.main())"]  # fmt: skip


def attempts(output):
    """Return the number of each attempt and its number of ranks, as rank 0 has written them."""
    return [(int(n), int(size)) for n, size in re.findall(r"\[0\] attempt (\d) on (\d)", output)]


@pytest.mark.parametrize(
    ("way", "backend"),
    [("kill", "shm"), ("3", "tcp"), pytest.param("raise", "shm", marks=pytest.mark.slow)],
)
def test_a_job_that_loses_a_rank_is_started_again_and_finds_nothing_left(way, backend, tmp_path):
    words = "run", "-n", 2, "--backend", backend, "--max-restarts", 2
    done = cobre(*words, RESTARTS, tmp_path, way, 1, 1)
    assert done.returncode == 0, done.stderr
    assert attempts(done.stdout) == [(0, 2), (1, 2)]
    said = "cobre-comm: the job is started again in 1 s, on 2 ranks (restart 1 of 2)"
    assert done.stderr.splitlines()[-1] == said


def test_ranks_that_were_killed_are_left_out_down_to_the_fewest(tmp_path):
    words = "run", "-n", 3, "--max-restarts", 3, "--min-ranks", 2, RESTARTS, tmp_path
    done = cobre(*words, "kill", 1, 2)
    assert done.returncode == 0, done.stderr
    assert attempts(done.stdout) == [(0, 3), (1, 2), (2, 2)]


def test_wrong_arguments_of_the_program_are_not_tried_again(tmp_path):
    done = cobre("run", "-n", 2, "--max-restarts", 5, RESTARTS, tmp_path, 2, 0, 9)
    assert done.returncode == 2
    assert attempts(done.stdout) == [(0, 2)]
    assert done.stderr.splitlines()[-1].endswith("exit code 2 says that its arguments are wrong")


def test_a_job_that_dies_at_once_is_not_started_for_ever(tmp_path):
    words = "run", "-n", 2, "--max-restarts", 2, RESTARTS, tmp_path, "early", 0, 9
    done = cobre(*words, before=AT_ONCE)
    assert done.returncode == 3
    again, last = [line for line in done.stderr.splitlines() if "started again" in line]
    assert again.endswith("(restart 1 of 2)")
    assert last.endswith("it has died at once, 2 times in a row")


def test_a_signal_from_outside_restarts_and_one_to_the_launcher_ends(tmp_path):
    with Running("run", "-n", 2, "--max-restarts", 5, RESTARTS, tmp_path, "sleep", 0, 9) as job:
        os.kill(job.wait_ready(2)[1][0], signal.SIGKILL)
        job.wait_ready(2)
        job.process.send_signal(signal.SIGTERM)
        code, output, errors = job.finish()
        assert code == 128 + signal.SIGTERM
        assert attempts(output) == [(0, 2), (1, 2)]
        assert "it was asked to end" in errors.splitlines()[-1]
        assert job.survivors() == []


def test_ctrl_c_between_two_attempts_ends_the_job(tmp_path):
    """The pause between attempts is long in this test, so that the signal arrives in the pause."""
    longer = [*AT_ONCE[:2], AT_ONCE[2].replace("AT_ONCE_S", "FIRST_PAUSE_S = restarts.AT_ONCE_S")]
    words = "run", "-n", 1, "--max-restarts", 5, RESTARTS, tmp_path, "early", 0, 9
    with Running(*words, before=longer) as job:
        while "started again" not in job.process.stderr.readline():
            pass
        job.process.send_signal(signal.SIGINT)
        code, _, errors = job.finish(SOON_S)
        assert code == 130
        assert errors.splitlines() == ["cobre-comm: ended by signal 2 (SIGINT)"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--max-restarts", "-1"], "max-restarts must be 0 or more, got -1"),
        (["--max-restarts", "x"], "argument --max-restarts: invalid int value: 'x'"),
        (
            ["--max-restarts", "1", "--min-ranks", "0"],
            "min-ranks must be between 1 and 2, got 0",
        ),
        (
            ["--max-restarts", "1", "--min-ranks", "3"],
            "min-ranks must be between 1 and 2, got 3",
        ),
        (["--min-ranks", "1"], "min-ranks is for a restart: say how many there may be"),
    ],
)
def test_numbers_that_make_no_restarts_are_one_line_and_status_2(words, said, refusal):
    assert said in refusal(["run", "-n", 2, *words, RESTARTS])


@pytest.mark.quick
def test_pauses_are_doubled_up_to_a_limit_while_a_job_dies_at_once():
    job, pauses = Restarts(20, 1), []
    for at_once in [False, *[True] * 9, False]:
        assert job.why_not(AttemptEnding(3, has_failed=True, at_once=at_once)) == ""
        pauses.append(job.pause_s)
    assert pauses == [1, 1, 2, 4, 8, 16, 32, 60, 60, 60, 1]


@pytest.mark.quick
def test_why_a_job_is_given_up():
    lost = AttemptEnding(137, has_failed=True)
    assert check_restarts(0, None, 4).why_not(lost) == "it has been, 0 times"
    once = check_restarts(2, None, 4)
    assert [once.why_not(lost) for _ in range(3)] == ["", "", "it has been, 2 times"]
    early = lost._replace(at_once=True)
    mixed = check_restarts(3, None, 4)
    assert [mixed.why_not(one) for one in (early, lost, early)] == ["", "", ""]
    assert check_restarts(1, None, 4).why_not(early) == "it has died at once, once in a row"
    assert once.why_not(lost._replace(why_final="it was asked to end")) == "it was asked to end"


@pytest.mark.quick
def test_how_many_ranks_a_restart_has():
    assert [check_restarts(1, None, 4).size(4, killed) for killed in (0, 1, 4)] == [4, 4, 4]
    assert [check_restarts(1, 2, 4).size(4, killed) for killed in (0, 1, 4)] == [4, 3, 2]
    assert check_restarts(2, 2, 4).size(2, 1) == 2
