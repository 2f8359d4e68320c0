"""Ctrl-C, and handlers of the user, while a rank waits."""

import signal

import pytest

from cobre_comm import CollectiveFailed
from tests.faults import bodies, signal_bodies
from tests.faults.test_lost_ranks import SLACK_S
from tests.grid import timeout_of

PORTABLE = {"COBRE_COMM_PORTABLE_WAIT": "1"}


@pytest.mark.parametrize("operation", bodies.OPERATIONS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGUSR2])
def test_signal_while_waiting(pools, backend, caller, operation, number):
    check(pools, backend, caller, operation, number, timeout_of(20))


@pytest.mark.parametrize("operation", ["allreduce", "broadcast"])
def test_interrupt_on_the_portable_path(pools, caller, operation):
    check(pools, "shm", caller, operation, signal.SIGINT, PORTABLE)


def check(pools, backend, caller, operation, number, env):
    values = pools.get(backend, 3).run(
        signal_bodies.interrupted, caller, operation, number, env=env, fresh=True
    )
    sent = values[2][0]
    _, caught, at, later, _ = values[0]
    expected = KeyboardInterrupt if number == signal.SIGINT else signal_bodies.Alarmed
    assert isinstance(caught, expected), repr(caught)
    if number == signal.SIGUSR2:
        assert caught.args == ("from the handler",)
    assert at - sent < SLACK_S
    assert len(later) == len(bodies.OPERATIONS)
    assert all(expected.__name__ in text or "from the handler" in text for text in later), later
    # Rank 2 comes late: rank 0 was in that step and has left; the next one shows it as lost.
    for rank in (1, 2):
        error = values[rank][1]
        assert error is None or (isinstance(error, CollectiveFailed) and 0 in error.ranks)


def test_others_learn_of_an_interrupted_rank(pools, backend, caller):
    values = pools.get(backend, 3).run(signal_bodies.interrupted_then_next, caller, fresh=True)
    assert isinstance(values[0], KeyboardInterrupt)
    for error in values[1:]:
        assert isinstance(error, CollectiveFailed)
        assert error.ranks == (0,)


def test_handler_that_returns_lets_the_wait_go_on(pools, backend, caller):
    values = pools.get(backend, 2).run(signal_bodies.handler_that_returns, caller, fresh=True)
    seen, entered = values[0]
    assert len(seen) == 3
    assert all(at > entered for at in seen)
