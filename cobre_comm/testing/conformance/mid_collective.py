"""SIGKILL and SIGSTOP of each rank at any moment of any collective: all others name it in time."""

import random
import signal

import pytest

from cobre_comm import CollectiveFailed
from cobre_comm.testing import RanksFailed
from cobre_comm.testing.conformance.bodies import victims
from cobre_comm.testing.conformance.checks import SLACK_S
from cobre_comm.testing.conformance.suite import Suite, needs

RANKS = 3
TIMEOUT_S = 0.7
LONG = [pytest.mark.slow, pytest.mark.timeout(900)]
often = pytest.mark.parametrize(
    ("caller", "times"),
    [("python", 1), *(pytest.param(caller, 10, marks=LONG) for caller in ("python", "njit"))],
)


def check(outcomes, victim, limit_s):
    """All others name the victim, in time."""
    for outcome in outcomes:
        if outcome.rank != victim:
            error, at, struck_at = outcome.value
            assert isinstance(error, CollectiveFailed)
            assert error.ranks == (victim,), str(error)
            assert at - struck_at < limit_s


class MidCollectiveTests(Suite):
    """A rank is struck somewhere inside a collective."""

    @needs("liveness")
    @often
    @pytest.mark.parametrize("victim", range(RANKS))
    def test_killed(self, pools, watchful_backend, caller, victim, times, tmp_path):
        pool, number = pools.get(watchful_backend, RANKS), signal.SIGKILL
        for outcomes in self._strikes(pool, caller, victim, number, times, tmp_path):
            assert outcomes[victim].exit_code == -number
            check(outcomes, victim, SLACK_S)

    @needs("timeouts")
    @often
    @pytest.mark.parametrize("victim", range(RANKS))
    def test_stopped(self, pools, watchful_backend, caller, victim, times, tmp_path):
        pool, number = pools.get(watchful_backend, RANKS), signal.SIGSTOP
        for outcomes in self._strikes(pool, caller, victim, number, times, tmp_path):
            check(outcomes, victim, TIMEOUT_S + SLACK_S)

    def _strikes(self, pool, caller, victim, number, times, tmp_path):
        env = self.grid.timeout_of(TIMEOUT_S)
        for time in range(times):
            weight = ("large", "small")[time % 2]
            pause_s = random.Random(f"{victim} {number} {time}").uniform(0.01, 0.15)
            folder = tmp_path / str(time)
            folder.mkdir()
            arguments = (caller, weight, victim, int(number), pause_s, str(folder))
            outcomes = pool.run_outcomes(victims.strike, *arguments, env=env, fresh=True)
            if any(not outcome.ok and outcome.rank != victim for outcome in outcomes):
                raise RanksFailed(outcomes)
            yield outcomes
