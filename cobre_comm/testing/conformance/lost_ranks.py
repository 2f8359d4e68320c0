"""A rank that is gone becomes an exception that names it, on all the others, within a second."""

import pytest

from cobre_comm import CollectiveFailed
from cobre_comm.testing import run_ranks_outcomes
from cobre_comm.testing.conformance.bodies import lost
from cobre_comm.testing.conformance.checks import SLACK_S, check_survivors, value_of
from cobre_comm.testing.conformance.suite import Suite, needs

CASES = [("allreduce", victim, caller) for victim in range(3) for caller in ("python", "njit")]
CASES += [
    ("barrier", 1, "python"),
    ("broadcast", 1, "python"),
    ("allgatherv", 1, "python"),
    ("barrier", 2, "njit"),
    ("broadcast", 2, "njit"),
    ("allgatherv", 2, "njit"),
]
SLOW = [
    (operation, victim, caller)
    for operation in lost.OPERATIONS
    for victim in range(3)
    for caller in ("python", "njit")
    if (operation, victim, caller) not in CASES
]
cases = pytest.mark.parametrize(
    ("operation", "victim", "caller"),
    CASES + [pytest.param(*case, marks=pytest.mark.slow) for case in SLOW],
)


def run(backend, size, body, *arguments, **keywords):
    """Run ranks that mpiexec, too, leaves alone when one is gone."""
    return run_ranks_outcomes(backend, size, body, *arguments, **keywords)


class LostRankTests(Suite):
    """A rank that is gone is named on all others."""

    @needs("liveness")
    @cases
    def test_killed_while_others_wait(self, watchful_backend, operation, victim, caller):
        outcomes = run(
            watchful_backend, 3, lost.wait_for_the_lost, caller, operation, victim, "kill"
        )
        check_survivors(outcomes, [victim], None, operation)
        assert outcomes[victim].exit_code == -9

    @needs("liveness")
    @pytest.mark.parametrize(("how", "code"), [("exit", 0), ("_exit", 0), ("term", -15)])
    def test_exit_while_others_wait(self, watchful_backend, caller, how, code):
        outcomes = run(watchful_backend, 3, lost.wait_for_the_lost, caller, "allreduce", 1, how)
        check_survivors(outcomes, [1], None, "allreduce")
        assert outcomes[1].exit_code == code

    @pytest.mark.parametrize("operation", lost.OPERATIONS)
    def test_closed_while_others_wait(self, pools, backend, caller, operation):
        outcomes = pools.get(backend, 3).run_outcomes(
            lost.wait_for_the_lost, caller, operation, 2, "close", fresh=True
        )
        check_survivors(outcomes, [2], outcomes[2].value, operation)

    @needs("liveness")
    def test_killed_in_a_collective(self, watchful_backend, caller):
        """The rank was waiting itself, so it took part in that step; the next one has lost it."""
        outcomes = run(watchful_backend, 3, lost.killed_in_a_collective, caller, "barrier", 0)
        assert outcomes[0].exit_code == -9
        for rank in (1, 2):
            caught, *_ = value_of(outcomes, rank)
            assert caught is None or isinstance(caught, CollectiveFailed)

    @needs("liveness")
    def test_child_of_a_dead_rank_does_not_keep_it_alive(self, watchful_backend):
        outcomes = run(watchful_backend, 2, lost.child_outlives_rank, 1, timeout_s=20)
        check_survivors(outcomes, [1], None, "barrier")

    @needs("liveness")
    @pytest.mark.parametrize("caller", ["python", "njit", "njit that holds the GIL"])
    def test_time_to_detection(self, watchful_backend, caller):
        """Measured on one clock: the others wait in their collective before the kill."""
        outcomes = run(watchful_backend, 2, lost.kill_and_tell, caller, timeout_s=20)
        killed_at, caught, at = value_of(outcomes, 0)
        assert isinstance(caught, CollectiveFailed)
        assert at - killed_at < SLACK_S
