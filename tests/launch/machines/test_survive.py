"""Survivors of a job of several launchers, which stand for as many machines."""

import itertools
import os
import re
import signal

import pytest

from tests.grid import some
from tests.launch.command import PROGRAMS, SOON_S

SURVIVES = (PROGRAMS / "survives.py",)
NEITHER, ALSO_RESTARTS = ["--survive"], ["--survive", "--max-restarts", 1]


def gone_on(output):
    return "goes on without" in output


@pytest.mark.parametrize("words", [NEITHER, ALSO_RESTARTS])
def test_the_ranks_of_the_other_machine_go_on(machine, words):
    jobs = [machine(node, *words, program=SURVIVES) for node in (0, 1)]
    pids = [job.wait_ready(1) for job in jobs]
    os.kill(pids[1][1][0], signal.SIGKILL)
    code, output, errors = jobs[0].finish(SOON_S)
    assert (code, errors) == (0, "")
    assert gone_on(output)
    code, _, errors = jobs[1].finish(SOON_S)
    assert code == 137
    assert "rank 1 was ended by signal 9" in errors
    assert "started again" not in errors


@pytest.mark.parametrize(
    ("words", "lost"),
    some([(NEITHER, 0), (ALSO_RESTARTS, 1)], itertools.product([NEITHER, ALSO_RESTARTS], [0, 1])),
)
def test_the_ranks_of_the_other_machine_go_on_without_a_launcher(machine, words, lost):
    jobs = [machine(node, *words, program=SURVIVES) for node in (0, 1)]
    for job in jobs:
        job.wait_ready(1)
    jobs[lost].process.kill()
    code, output, errors = jobs[1 - lost].finish(SOON_S)
    assert (code, errors) == (0, "")
    assert gone_on(output)
    assert jobs[lost].survivors() == []


def test_a_loss_before_the_ranks_have_met_ends_those_of_the_other_machine(machine):
    early = (PROGRAMS / "early.py",)
    jobs = [machine(node, *ALSO_RESTARTS, program=early) for node in (0, 1)]
    (code, _, errors), (other, _, told) = [job.finish(SOON_S) for job in jobs]
    assert (code, other) == (1, 128 + signal.SIGKILL)
    assert "the job has lost a rank on another machine" in errors
    assert "rank 1 was ended by signal 9" in told


def test_a_job_is_started_again_if_the_survivors_fail(machine):
    jobs = [machine(node, *ALSO_RESTARTS, way=("kill", 1, 1)) for node in (0, 1)]
    for code, output, errors in [job.finish() for job in jobs]:
        assert code == 0, errors
        assert re.findall(r"attempt (\d) on 2", output) == ["0", "1"]
        assert errors.splitlines()[-1].endswith("(restart 1 of 1)")


def test_a_job_without_survivors_is_started_again_on_all_machines(machine):
    """Both ranks end by themselves: no machine has a survivor that could fail."""
    jobs = [machine(node, *ALSO_RESTARTS, way=("early", 1, 9)) for node in (0, 1)]
    for code, _, errors in [job.finish() for job in jobs]:
        assert code == 3
        assert errors.splitlines()[-1].endswith("it has died at once, once in a row")
