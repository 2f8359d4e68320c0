"""Restarts of a job of several launchers, which stand for as many machines."""

import os
import re
import signal

import pytest

from tests.launch.command import COMMAND, PROGRAMS

RESTARTS = PROGRAMS / "restarts.py"


def attempts(output):
    return [(int(n), int(size)) for n, size in re.findall(r"attempt (\d) on (\d)", output)]


def test_a_job_on_two_machines_is_started_again_on_both(machine):
    jobs = [machine(node, "--max-restarts", 2, way=("kill", 1, 1)) for node in (1, 0)]
    for code, output, errors in [job.finish() for job in jobs]:
        assert code == 0, errors
        assert attempts(output) == [(0, 2), (1, 2)]
        said = "cobre-comm: the job is started again in 1 s (restart 1 of 2)"
        assert errors.splitlines()[-1] == said


def test_ranks_that_wait_for_one_that_has_died_are_ended(machine):
    """Rank 0 would wait for five minutes, because rank 1 ends before they have met."""
    jobs = [machine(node, "--max-restarts", 2, way=(way, 1, 9)) for node, way in
            ((1, "early"), (0, "kill"))]  # fmt: skip
    there, here = [job.finish() for job in jobs]
    assert (there[0], here[0]) == (3, 1)
    for _, _, errors in (there, here):
        assert errors.splitlines()[-1].endswith("it has died at once, 2 times in a row")
    assert "ended, because the job has lost a rank on another machine" in here[2]


def test_a_lost_machine_is_left_out_where_the_others_are_enough(machine, tmp_path):
    words = "--max-restarts", 2, "--min-ranks", 2, "--log-dir", tmp_path
    first, lost, third = [machine(node, *words, way=("sleep", 2, 1), nodes=3) for node in range(3)]
    for job in (first, lost, third):
        job.wait_ready(1)
    lost.process.kill()
    for job in (first, third):
        code, output, errors = job.finish()
        assert code == 0, errors
        assert attempts(output) == [(0, 3), (1, 2)]
        assert errors.splitlines()[-1] == "cobre-comm: the job goes on without machine 1"
    log = (tmp_path / "rank-1.log").read_text()
    assert attempts(log) == [(0, 3), (1, 2)], "of the lost machine, then of the third"


@pytest.mark.slow
def test_a_machine_that_comes_late_takes_part_in_the_next_attempt(machine):
    words = "--max-restarts", 2, "--min-ranks", 2
    told = {"way": ("sleep", 1, 2), "nodes": 3, "before": COMMAND}
    first, lost, third = [machine(node, *words, **told) for node in range(3)]
    for job in (first, lost, third):
        job.wait_ready(1)
    lost.process.kill()
    lost.process.wait()
    first.wait_ready(1)
    second = third.wait_ready(1)[1]
    late = machine(1, *words, **told)
    assert late.process.stderr.readline() == "cobre-comm: waiting for machine 0\n"
    os.kill(second[0], signal.SIGKILL)
    for job in (first, late, third):
        code, output, errors = job.finish()
        assert code == 0, errors
        assert attempts(output)[-1] == (2, 3)


def test_a_machine_that_returns_takes_part_again(machine):
    words = {"way": ("sleep", 0, 1)}
    first, lost = [machine(node, "--max-restarts", 2, **words) for node in (0, 1)]
    for job in (first, lost):
        job.wait_ready(1)
    lost.process.kill()
    lost.process.wait()
    again = machine(1, "--max-restarts", 2, **words)
    assert attempts(again.finish()[1]) == [(1, 2)]
    code, output, errors = first.finish()
    assert code == 0, errors
    assert attempts(output) == [(0, 2), (1, 2)]


@pytest.mark.parametrize("asked", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_ctrl_c_on_one_machine_ends_the_job_on_both(machine, asked):
    jobs = [machine(node, "--max-restarts", 2, way=("sleep", 0, 9)) for node in (0, 1)]
    for job in jobs:
        job.wait_ready(1)
    jobs[asked].process.send_signal(signal.SIGINT)
    assert jobs[asked].finish()[0] == 128 + signal.SIGINT
    code, output, errors = jobs[1 - asked].finish()
    assert code == 1
    assert attempts(output) == [(0, 2)]
    assert errors.splitlines()[-1].endswith("it was asked to end")


def test_a_job_that_stops_when_asked_is_not_started_again(machine):
    program = PROGRAMS / "stops.py", "python"
    jobs = [machine(node, "--max-restarts", 2, program=program) for node in (0, 1)]
    for job in jobs:
        job.wait_ready(1)
    jobs[1].process.send_signal(signal.SIGUSR1)
    for code, output, errors in [job.finish() for job in jobs]:
        assert (code, errors) == (0, "")
        assert len(re.findall("rounds", output)) == 1


def test_without_the_first_machine_the_job_is_given_up(machine):
    jobs = [machine(node, "--max-restarts", 2, way=("sleep", 0, 9)) for node in (0, 1)]
    for job in jobs:
        job.wait_ready(1)
    os.kill(jobs[0].process.pid, signal.SIGKILL)
    code, _, errors = jobs[1].finish()
    assert code == 1
    assert errors.splitlines()[-1].endswith("the launcher of machine 0 is lost")
    assert jobs[1].survivors() == []
