"""check_signals runs Python's signal handlers in a loop that calls no Python.

If a handler raises, its exception ends the loop. A handler that runs while its rank waits cannot
call a collective of the same communicator.
"""

import pathlib
import signal
import threading
from functools import partial

from numba import njit

from cobre_comm import InvalidCommunicator, check_signals
from cobre_comm.testing.cases.calls import calls
from cobre_comm.testing.cases.case import BOTH, NEVER, QUICK, Case
from cobre_comm.testing.cases.waiting import wait_until

PAUSE_S = 0.05
UNTIL_IT_WAITS_S = 1.0
ENDLESS = 10**12


class Alarm(Exception):
    """The exception that a case's handler raises."""


def _loop(rounds):
    done = 0
    while done < rounds:
        check_signals()
        done += 1
    return done


LOOPS = {
    "python": _loop,
    "njit": njit(cache=True)(_loop),
    "njit without the GIL": njit(cache=True, nogil=True)(_loop),
}


def interrupted(comm, caller):
    """Each handler that raises ends the loop by its exception, and the next loop works again."""
    for error in [Alarm("first"), KeyboardInterrupt("second"), Alarm("third")]:
        assert LOOPS[caller](3) == 3
        met, before = None, signal.signal(signal.SIGALRM, _raising(error))
        try:
            signal.setitimer(signal.ITIMER_REAL, PAUSE_S)
            LOOPS[caller](ENDLESS)
        except BaseException as caught:
            met = caught
        finally:
            signal.signal(signal.SIGALRM, before)
        assert met is error, repr(met)


def _raising(error):
    def handle(number, frame):
        raise error

    return handle


def handler_that_returns(comm, caller):
    """A handler that raises nothing ends no loop."""
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, PAUSE_S)
        while not seen:
            LOOPS[caller](1000)
    finally:
        signal.signal(signal.SIGALRM, before)


def handler_that_calls(comm, caller, folder):
    """Rank 0 waits for rank 1; rank 0's handler then makes two calls; return the errors of both."""
    has_called, texts = pathlib.Path(folder) / "called", []
    barrier = calls(caller).barrier

    def handle(number, frame):
        for call in (lambda: barrier(comm), comm.close):
            try:
                call()
            except InvalidCommunicator as error:
                texts.append(str(error))
        has_called.touch()

    barrier(comm)
    if comm.rank == 0:
        before = signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, UNTIL_IT_WAITS_S)
    if comm.rank != 0:
        wait_until(has_called.exists)
    barrier(comm)
    if comm.rank == 0:
        signal.signal(signal.SIGALRM, before)
    barrier(comm)
    return texts


def told_of_the_handler(ran):
    told, nothing = ran.values
    assert nothing == []
    assert [text.split(":")[0] for text in told] == ["barrier", "close"], told
    assert all("a signal handler called it while its own thread waits" in text for text in told)


def another_thread(comm, caller):
    """In another thread check_signals does nothing: Python's handlers run in the main thread."""
    done = []
    thread = threading.Thread(target=lambda: done.append(LOOPS[caller](100_000)))
    thread.start()
    thread.join()
    assert done == [100_000]


case = partial(Case, callers=tuple(LOOPS), where="typed", check=QUICK)
CASES = [
    case("interrupted", interrupted),
    case("handler_that_returns", handler_that_returns),
    case("another_thread", another_thread),
    Case(
        "handler_that_calls", handler_that_calls, callers=BOTH, sizes=(2,), folder=True,
        fresh=True, check=NEVER, needs=("signals", "threads"), expect=told_of_the_handler,
    ),
]  # fmt: skip
