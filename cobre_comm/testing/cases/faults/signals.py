"""Ctrl-C, and handlers of the user, while a rank waits in a collective."""

import os
import pathlib
import signal
import time

from cobre_comm import CollectiveFailed
from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import NEVER, Case
from cobre_comm.testing.cases.faults.calling import OPERATIONS, meet_failure, prepare
from cobre_comm.testing.cases.faults.survivors import SLACK_S


class Alarmed(BaseException):
    """What a signal handler of the user raises."""


def interrupted(comm, caller, operation, number, folder, pause_s=0.2):
    """The last rank signals rank 0, which waits; then it learns of a lost peer itself."""
    pids, met = prepare(comm, caller), pathlib.Path(folder) / "met"
    if number == signal.SIGUSR2:

        def handler(signum, frame):
            raise Alarmed("from the handler")

        signal.signal(number, handler)
    last, sent = comm.size - 1, 0.0
    if comm.rank == last:
        time.sleep(pause_s)
        sent = time.monotonic()
        os.kill(pids[0], number)
        while not met.exists():
            time.sleep(0.01)
    failure = meet_failure(comm, caller, operation, root=last)
    if comm.rank == 0:
        met.touch()
    return (sent, *failure)


def handler_that_returns(comm, caller):
    """A handler that raises nothing runs while the rank waits, and the wait goes on."""
    pids = prepare(comm, caller)
    seen = []
    signal.signal(signal.SIGUSR2, lambda signum, frame: seen.append(time.monotonic()))
    if comm.rank == comm.size - 1:
        for _ in range(3):
            time.sleep(0.15)
            os.kill(pids[0], signal.SIGUSR2)
        time.sleep(0.3)
    entered = time.monotonic()
    calls(caller, comm.rank).barrier(comm)
    return seen, entered


def interrupted_then_next(comm, caller):
    """Rank 0 is interrupted while it waits; the others go on to the next collective."""
    pids = prepare(comm, caller)
    if comm.rank == comm.size - 1:
        time.sleep(0.3)
        os.kill(pids[0], signal.SIGINT)
        time.sleep(0.5)
    caught = None
    try:
        for _ in range(2):
            calls(caller, comm.rank).barrier(comm)
    except BaseException as error:
        caught = error
    return caught


def rank_0_is_interrupted(ran):
    check_interrupted(ran.values, ran.cell.arguments[1])


def check_interrupted(values, number):
    """Rank 0 raises what the handler did, at once; the others lose it, if they meet it again."""
    sent = values[2][0]
    _, caught, at, later, _ = values[0]
    expected = KeyboardInterrupt if number == signal.SIGINT else Alarmed
    assert isinstance(caught, expected), repr(caught)
    if number == signal.SIGUSR2:
        assert caught.args == ("from the handler",)
    assert at - sent < SLACK_S
    assert len(later) == len(OPERATIONS)
    assert all(expected.__name__ in text or "from the handler" in text for text in later), later
    # Rank 2 comes late: rank 0 was in that step and has left; the next one shows it as lost.
    for rank in (1, 2):
        error = values[rank][1]
        assert error is None or (isinstance(error, CollectiveFailed) and 0 in error.ranks)


def others_learn_of_it(ran):
    assert isinstance(ran.values[0], KeyboardInterrupt)
    for error in ran.values[1:]:
        assert isinstance(error, CollectiveFailed)
        assert error.ranks == (0,)


def three_were_seen(ran):
    seen, entered = ran.values[0]
    assert len(seen) == 3
    assert all(at > entered for at in seen)


def case(name, body, over=None, **fields):
    return Case(name, body, over or {}, needs=("signals",), fresh=True, check=NEVER, **fields)


CASES = [
    case(
        "signal_while_waiting", interrupted,
        {"operation": OPERATIONS, "number": [signal.SIGINT, signal.SIGUSR2]}, sizes=(3,),
        limit_s=20, folder=True, expect=rank_0_is_interrupted,
    ),
    case(
        "others_learn_of_an_interrupted_rank", interrupted_then_next, sizes=(3,),
        expect=others_learn_of_it,
    ),
    case(
        "handler_that_returns_lets_the_wait_go_on", handler_that_returns, sizes=(2,),
        expect=three_were_seen,
    ),
]  # fmt: skip
