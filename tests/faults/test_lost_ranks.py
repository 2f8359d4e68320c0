"""A rank that is gone becomes an exception that names it, on all the others, within a second."""

import pytest

from cobre_comm import CollectiveFailed
from cobre_comm.testing import RanksFailed, run_ranks_outcomes
from tests.faults import bodies

SLACK_S = 1.0
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
    for operation in bodies.OPERATIONS
    for victim in range(3)
    for caller in ("python", "njit")
    if (operation, victim, caller) not in CASES
]
cases = pytest.mark.parametrize(
    ("operation", "victim", "caller"),
    CASES + [pytest.param(*case, marks=pytest.mark.slow) for case in SLOW],
)


def check_survivors(outcomes, lost, gone_at, operation):
    """All others name the lost rank in time, and every later collective names the cause."""
    if any(outcome.timed_out for outcome in outcomes):
        raise RanksFailed(outcomes)
    for outcome in outcomes:
        if outcome.rank in lost:
            continue
        if not outcome.ok:
            raise RanksFailed(outcomes)
        caught, at, later, took = outcome.value
        assert isinstance(caught, CollectiveFailed), caught
        assert caught.operation == operation
        assert set(lost) <= set(caught.ranks)
        assert all(f"rank {rank}" in str(caught) for rank in lost)
        assert caught.mpi_error_code == 0
        if gone_at is not None:
            assert at - gone_at < SLACK_S
        check_later(later, took, str(caught))


def check_later(later, took, cause):
    assert len(later) == len(bodies.OPERATIONS)
    assert all(cause in text for text in later), later
    assert took < SLACK_S


def run(backend, size, body, *arguments, **keywords):
    """Run ranks that mpiexec, too, leaves alone when one is gone."""
    return run_ranks_outcomes(backend, size, body, *arguments, survivors=True, **keywords)


@cases
def test_killed_while_others_wait(watchful_backend, operation, victim, caller):
    outcomes = run(watchful_backend, 3, bodies.wait_for_the_lost, caller, operation, victim, "kill")
    check_survivors(outcomes, [victim], None, operation)
    assert outcomes[victim].exit_code == -9


@pytest.mark.parametrize(("how", "code"), [("exit", 0), ("_exit", 0), ("term", -15)])
def test_exit_while_others_wait(watchful_backend, caller, how, code):
    outcomes = run(watchful_backend, 3, bodies.wait_for_the_lost, caller, "allreduce", 1, how)
    check_survivors(outcomes, [1], None, "allreduce")
    assert outcomes[1].exit_code == code


@pytest.mark.parametrize("operation", bodies.OPERATIONS)
def test_closed_while_others_wait(pools, backend, caller, operation):
    outcomes = pools.get(backend, 3).run_outcomes(
        bodies.wait_for_the_lost, caller, operation, 2, "close", fresh=True
    )
    check_survivors(outcomes, [2], outcomes[2].value, operation)


def test_killed_in_a_collective(watchful_backend, caller):
    """The rank was waiting itself, so it took part in that step; the next one has lost it."""
    outcomes = run(watchful_backend, 3, bodies.killed_in_a_collective, caller, "barrier", 0)
    assert outcomes[0].exit_code == -9
    for outcome in outcomes[1:]:
        caught, *_ = outcome.value
        assert caught is None or isinstance(caught, CollectiveFailed)


def test_child_of_a_dead_rank_does_not_keep_it_alive(watchful_backend):
    outcomes = run(watchful_backend, 2, bodies.child_outlives_rank, 1, timeout_s=20)
    check_survivors(outcomes, [1], None, "barrier")


@pytest.mark.parametrize("caller", ["python", "njit", "njit that holds the GIL"])
def test_time_to_detection(watchful_backend, caller):
    """Measured on one clock: the others wait in their collective before the kill."""
    outcomes = run(watchful_backend, 2, bodies.kill_and_tell, caller, timeout_s=20)
    killed_at, caught, at = outcomes[0].value
    assert isinstance(caught, CollectiveFailed)
    assert at - killed_at < SLACK_S
