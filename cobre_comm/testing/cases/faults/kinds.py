"""The kinds of faults: how each strikes, and which errors all other ranks must then get."""

import os
import signal
import sys
from collections.abc import Callable
from typing import NamedTuple

from cobre_comm.testing.cases.faults.calling import FORKS
from cobre_comm.testing.cases.faults.strike import EXIT_CODE, Victim

# What the ranks are promised after a fault: each is the name of a method in judge.py.
LOST = "lost"  # all others name the victim
INTERRUPTED = "interrupted"  # as LOST, and the exception of its handler ends the victim's wait
LATE = "late"  # after the limit all others name the victim and the variable
NOTHING = "nothing"  # results are right on all ranks, and no rank meets an error
REFUSED = "refused"  # as NOTHING, but a thread or child that uses the communicator gets an error
HARMFUL = (LOST, INTERRUPTED, LATE)  # the job cannot continue


class Kind(NamedTuple):
    """A kind of fault."""

    promise: str  # a name above: the result that the survivors must have
    strike: Callable  # the method that strikes, called with the victim
    exit_code: int = 0  # the exit code of the victim
    operation: str = ""  # the operation that the fault puts in place of the step's, if any
    meets: str = ""  # the error that ends the wait of a victim that continues to live


def sending(number):
    return lambda victim: victim.send(number)


def at_once(act, *args):
    def strike(victim):
        victim.now()
        act(*args)

    return strike


def forking(strike, how):
    return lambda victim: strike(victim, FORKS[how])


KINDS = {
    "killed": Kind(LOST, sending(signal.SIGKILL), -signal.SIGKILL),
    "terminated": Kind(LOST, sending(signal.SIGTERM), -signal.SIGTERM),
    "crashed": Kind(LOST, Victim.crash, -signal.SIGSEGV),
    "exit_0": Kind(LOST, at_once(sys.exit, 0)),
    "exit_code": Kind(LOST, at_once(sys.exit, EXIT_CODE), EXIT_CODE),
    "exit_at_once": Kind(LOST, at_once(os._exit, EXIT_CODE), EXIT_CODE),
    "exit_in_handler": Kind(LOST, Victim.exit_in_handler, EXIT_CODE),
    "closed": Kind(LOST, Victim.close),
    "orphan": Kind(LOST, forking(Victim.orphan, "python"), -signal.SIGKILL),
    "orphan_of_libc": Kind(LOST, forking(Victim.orphan, "libc"), -signal.SIGKILL),
    "interrupted": Kind(INTERRUPTED, Victim.interrupt, meets="KeyboardInterrupt"),
    "alarmed": Kind(INTERRUPTED, Victim.alarm, meets="Alarmed"),
    "late": Kind(LATE, Victim.late),
    "stopped": Kind(LATE, sending(signal.SIGSTOP)),  # a survivor sends it SIGCONT in the end
    "signals": Kind(NOTHING, Victim.signals),
    "children": Kind(NOTHING, Victim.children),
    "use_in_child": Kind(REFUSED, forking(Victim.use_in_child, "python")),
    "use_in_child_of_libc": Kind(REFUSED, forking(Victim.use_in_child, "libc")),
    "fork_in_handler": Kind(REFUSED, forking(Victim.fork_in_handler, "python")),
    "fork_of_libc_in_handler": Kind(REFUSED, forking(Victim.fork_in_handler, "libc")),
    "second_thread": Kind(REFUSED, Victim.second_thread, operation="meet"),
}
