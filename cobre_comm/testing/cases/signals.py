"""check_signals: a handler runs, and what it raises comes out, in a loop that calls no Python."""

import signal
import threading
from functools import partial

from numba import njit

from cobre_comm import check_signals
from cobre_comm.testing.cases.case import QUICK, Case

PAUSE_S = 0.05
ENDLESS = 10**12


class Alarm(Exception):
    """What the handler of a case raises."""


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
    """What the handler raises comes out, each time, and nothing is left of it."""
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
    """A handler that raises nothing ends nothing."""
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, PAUSE_S)
        while not seen:
            LOOPS[caller](1000)
    finally:
        signal.signal(signal.SIGALRM, before)


def another_thread(comm, caller):
    """Python runs handlers in the main thread; nothing happens in another one."""
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
]
