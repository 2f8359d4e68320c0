"""Signals to a rank that waits in a collective."""

import os
import signal
import time

from cobre_comm.testing.conformance.bodies.lost import meet_failure, prepare
from cobre_comm.testing.conformance.calls import calls


class Alarmed(BaseException):
    """What a signal handler of the user raises."""


def interrupted(comm, caller, operation, number, pause_s=0.4):
    """The last rank signals rank 0, which waits; then it learns of a lost peer itself."""
    pids = prepare(comm, caller)
    if number == signal.SIGUSR2:

        def handler(signum, frame):
            raise Alarmed("from the handler")

        signal.signal(number, handler)
    last = comm.size - 1
    if comm.rank == last:
        time.sleep(pause_s)
        sent = time.monotonic()
        os.kill(pids[0], number)
        time.sleep(1.2)
        return (sent, *meet_failure(comm, caller, operation, root=last))
    return (0.0, *meet_failure(comm, caller, operation, root=last))


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
    calls(caller).barrier(comm)
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
            calls(caller).barrier(comm)
    except BaseException as error:
        caught = error
    return caught
