"""Survivors of a job of several launchers, each of which stands for a machine."""

import os
import signal

import pytest

from tests.launch.command import PROGRAMS, SOON_S

SURVIVES = "--survive", PROGRAMS / "survives.py"


def gone_on(output):
    return "goes on without" in output


def test_the_ranks_of_the_other_machine_go_on(machine):
    jobs = [machine(node, *SURVIVES) for node in (0, 1)]
    pids = [job.wait_ready(1) for job in jobs]
    os.kill(pids[1][1][0], signal.SIGKILL)
    code, output, errors = jobs[0].finish(SOON_S)
    assert (code, errors) == (0, "")
    assert gone_on(output)
    code, _, errors = jobs[1].finish(SOON_S)
    assert code == 137
    assert "rank 1 was ended by signal 9" in errors


@pytest.mark.parametrize("lost", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_the_ranks_of_the_other_machine_go_on_without_a_launcher(machine, lost):
    jobs = [machine(node, *SURVIVES) for node in (0, 1)]
    for job in jobs:
        job.wait_ready(1)
    jobs[lost].process.kill()
    code, output, errors = jobs[1 - lost].finish(SOON_S)
    assert (code, errors) == (0, "")
    assert gone_on(output)
    assert jobs[lost].survivors() == []
