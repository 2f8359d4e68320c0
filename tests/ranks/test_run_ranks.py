"""The shipped way to run ranks is itself bounded, killable and tells what happened."""

import time

import psutil
import pytest

from cobre_comm.testing import RankPool, RanksFailed, leftovers, run_ranks, run_ranks_outcomes
from tests.ranks import bodies


def test_values_in_rank_order():
    assert run_ranks("shm", 3, bodies.identity, "x") == [(r, 3, "x") for r in range(3)]
    assert run_ranks("local", 1, bodies.identity) == [(0, 1)]


def test_local_has_one_rank():
    with pytest.raises(ValueError, match="one rank"):
        run_ranks("local", 2, bodies.identity)


def test_failure_has_the_traceback_of_the_rank():
    with pytest.raises(RanksFailed, match="fails_on") as caught:
        run_ranks("shm", 2, bodies.fails_on, 1)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "rank 1" in str(caught.value)
    assert caught.value.outcomes[0].value == "fine"


def test_expected_exceptions():
    raised = run_ranks("local", 1, bodies.fails_on, 0, expect=ZeroDivisionError)
    assert [str(error) for error in raised] == ["on rank 0"]
    with pytest.raises(RanksFailed, match="every rank should raise"):
        run_ranks("shm", 2, bodies.fails_on, 0, expect=ZeroDivisionError)


def test_exception_that_cannot_be_pickled():
    [outcome] = run_ranks_outcomes("local", 1, bodies.raises_what_cannot_be_pickled)
    assert "Local: a class of this call" in str(outcome.exception)


def test_deadline_ends_what_is_left():
    began = time.monotonic()
    outcomes = run_ranks_outcomes("shm", 2, bodies.sleeps_on, 0, timeout_s=5)
    assert time.monotonic() - began < 20
    assert outcomes[0].timed_out
    assert "sleeps_on" in outcomes[0].output, "the stack at the deadline"
    assert not psutil.pid_exists(outcomes[1].value)


def test_exit_code_and_last_words():
    [outcome] = run_ranks_outcomes("local", 1, bodies.exits_with, 7)
    assert outcome.exit_code == 7
    assert "said before the end" in outcome.output
    assert not outcome.ok


def test_environment_is_of_this_job_alone(monkeypatch):
    monkeypatch.setenv("COBRE_SHM_TIMEOUT_SECS", "1")
    monkeypatch.setenv("SLURM_PROCID", "3")
    names = ("COBRE_SHM_TIMEOUT_SECS", "SLURM_PROCID", "COBRE_SHM_RANK", "MINE")
    outcomes = run_ranks_outcomes(
        "shm", 2, bodies.environment, *names, env={"MINE": "yes"}, connect=False
    )
    assert outcomes[1].value == ([None, None, "1", "yes"], True)


def test_pool_keeps_its_processes_until_a_body_fails():
    with RankPool("shm", 2) as pool:
        first = pool.run(bodies.pid)
        assert pool.run(bodies.pid) == first == pool.pids
        assert pool.run(bodies.pid, fresh=True) == first
        with pytest.raises(RanksFailed):
            pool.run(bodies.fails_on, 0, fresh=True)
        assert pool.run(bodies.pid) == first
        with pytest.raises(RanksFailed):
            pool.run(bodies.fails_on, 0)
        assert not set(pool.run(bodies.pid)) & set(first)
        last = pool.pids
    assert not any(psutil.pid_exists(pid) for pid in last)
    assert leftovers() == []


def test_pool_survives_the_end_of_a_rank():
    with RankPool("local", 1) as pool:
        assert pool.run_outcomes(bodies.exits_with, 3)[0].exit_code == 3
        assert pool.run(bodies.identity) == [(0, 1)]
        assert pool.run_outcomes(bodies.sleeps_on, 0, timeout_s=3)[0].timed_out
        assert pool.run(bodies.identity) == [(0, 1)]
