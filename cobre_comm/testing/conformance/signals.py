"""Ctrl-C, and handlers of the user, while a rank waits."""

import signal

import pytest

from cobre_comm import CollectiveFailed
from cobre_comm.testing.conformance.bodies import lost, signals
from cobre_comm.testing.conformance.checks import SLACK_S
from cobre_comm.testing.conformance.suite import Suite, needs


def check_signal(pools, backend, caller, operation, number, env):
    values = pools.get(backend, 3).run(
        signals.interrupted, caller, operation, number, env=env, fresh=True
    )
    sent = values[2][0]
    _, caught, at, later, _ = values[0]
    expected = KeyboardInterrupt if number == signal.SIGINT else signals.Alarmed
    assert isinstance(caught, expected), repr(caught)
    if number == signal.SIGUSR2:
        assert caught.args == ("from the handler",)
    assert at - sent < SLACK_S
    assert len(later) == len(lost.OPERATIONS)
    assert all(expected.__name__ in text or "from the handler" in text for text in later), later
    # Rank 2 comes late: rank 0 was in that step and has left; the next one shows it as lost.
    for rank in (1, 2):
        error = values[rank][1]
        assert error is None or (isinstance(error, CollectiveFailed) and 0 in error.ranks)


class SignalTests(Suite):
    """Ctrl-C, and handlers of the user, while a rank waits."""

    @needs("signals")
    @pytest.mark.parametrize("operation", lost.OPERATIONS)
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGUSR2])
    def test_signal_while_waiting(self, pools, backend, caller, operation, number):
        check_signal(pools, backend, caller, operation, number, self.grid.timeout_of(20))

    @needs("signals")
    def test_others_learn_of_an_interrupted_rank(self, pools, backend, caller):
        values = pools.get(backend, 3).run(signals.interrupted_then_next, caller, fresh=True)
        assert isinstance(values[0], KeyboardInterrupt)
        for error in values[1:]:
            assert isinstance(error, CollectiveFailed)
            assert error.ranks == (0,)

    @needs("signals")
    def test_handler_that_returns_lets_the_wait_go_on(self, pools, backend, caller):
        values = pools.get(backend, 2).run(signals.handler_that_returns, caller, fresh=True)
        seen, entered = values[0]
        assert len(seen) == 3
        assert all(at > entered for at in seen)
