"""SIGKILL and SIGSTOP of each rank at any moment of any collective: all others name it in time."""

import random
import signal

import pytest

from cobre_comm import CollectiveFailed
from cobre_comm.testing import RanksFailed
from tests.faults import victim_bodies
from tests.grid import timeout_of

RANKS = 3
TIMEOUT_S = 0.7
SLACK_S = 1.0
ENV = timeout_of(TIMEOUT_S)
LONG = [pytest.mark.slow, pytest.mark.timeout(900)]
often = pytest.mark.parametrize(
    ("caller", "times"),
    [("python", 1), *(pytest.param(caller, 10, marks=LONG) for caller in ("python", "njit"))],
)


def strike(pools, watchful_backend, caller, victim, number, times, tmp_path):
    pool = pools.get(watchful_backend, RANKS)
    for time in range(times):
        weight = ("large", "small")[time % 2]
        pause_s = random.Random(f"{victim} {number} {time}").uniform(0.01, 0.15)
        folder = tmp_path / str(time)
        folder.mkdir()
        arguments = (caller, weight, victim, int(number), pause_s, str(folder))
        outcomes = pool.run_outcomes(victim_bodies.strike, *arguments, env=ENV, fresh=True)
        if any(not outcome.ok and outcome.rank != victim for outcome in outcomes):
            raise RanksFailed(outcomes)
        yield outcomes


def check(outcomes, victim, limit_s):
    for outcome in outcomes:
        if outcome.rank != victim:
            error, at, struck_at = outcome.value
            assert isinstance(error, CollectiveFailed)
            assert error.ranks == (victim,), str(error)
            assert at - struck_at < limit_s


@often
@pytest.mark.parametrize("victim", range(RANKS))
def test_killed(pools, watchful_backend, caller, victim, times, tmp_path):
    number = signal.SIGKILL
    for outcomes in strike(pools, watchful_backend, caller, victim, number, times, tmp_path):
        assert outcomes[victim].exit_code == -number
        check(outcomes, victim, SLACK_S)


@often
@pytest.mark.parametrize("victim", range(RANKS))
def test_stopped(pools, watchful_backend, caller, victim, times, tmp_path):
    number = signal.SIGSTOP
    for outcomes in strike(pools, watchful_backend, caller, victim, number, times, tmp_path):
        check(outcomes, victim, TIMEOUT_S + SLACK_S)
