"""The kinds of faults: how each strikes, when it can, and what all other ranks must then meet."""

import os
import signal
import sys
from collections.abc import Callable
from typing import NamedTuple

from cobre_comm import ReduceOp
from cobre_comm.testing.cases.faults.calling import FORKS
from cobre_comm.testing.cases.faults.fault import CLOSE, LAST, MOMENTS, REGION, START, STEP
from cobre_comm.testing.cases.faults.strike import EXIT_CODE, Victim

# What a fault promises: the name of a function in judge.py.
LOST = "lost"  # all others name the victim
INTERRUPTED = "interrupted"  # its own wait ends too, by what its handler raised
LATE = "late"  # all others name the victim and the variable, after the limit
ASTRAY = "astray"  # all ranks learn who called what
NOTHING = "nothing"  # results are right on all ranks, and no rank meets an error
REFUSED = "refused"  # nothing; a thread or a child that may not use the communicator is told
SHORT = "short"  # nothing, or all ranks alike are told that there is no memory; or the victim fails
ENDED = "ended"  # no rank is left
UNSAID = "unsaid"  # nothing, but the launcher says that output is missing, and fails
PLANTED = "planted"  # each rank meets the others, or says in time what stands in its way
HARMFUL = (LOST, INTERRUPTED, LATE, ASTRAY)  # the job cannot go on


class Kind(NamedTuple):
    """A kind of fault.

    Attributes
    ----------
    promise : str
        What must come out.
    strike : callable
        What the victim does; None where the surroundings strike.
    exit_code : int
        With which the victim ends.
    moments : tuple of str
        When it can strike.
    operation : str
        What all ranks call at the step at which it strikes, where that matters.
    signal : int
        What comes from outside.
    """

    promise: str
    strike: Callable = Victim.wait_outside
    exit_code: int = 0
    moments: tuple = (STEP,)
    operation: str = ""
    signal: int = 0


ANY = (*MOMENTS, LAST)
RUNNING = (STEP, REGION)
CALLING = (STEP, REGION, LAST)  # not where a handler raises: Python drops that in a __del__


def _sending(number):
    return lambda victim: victim.send(number)


def _at_once(act, *args):
    def strike(victim):
        victim.now()
        act(*args)

    return strike


def _astray(operation, length=5, **keywords):
    return lambda victim: victim.astray(operation, length, **keywords)


def _forking(strike, how):
    return lambda victim: strike(victim, FORKS[how])


KINDS = {
    "killed": Kind(LOST, _sending(signal.SIGKILL), -signal.SIGKILL, ANY),
    "terminated": Kind(LOST, _sending(signal.SIGTERM), -signal.SIGTERM, ANY),
    "crashed": Kind(LOST, Victim.crash, -signal.SIGSEGV, ANY),
    "exit_0": Kind(LOST, _at_once(sys.exit, 0)),
    "exit_code": Kind(LOST, _at_once(sys.exit, EXIT_CODE), EXIT_CODE),
    "exit_at_once": Kind(LOST, _at_once(os._exit, EXIT_CODE), EXIT_CODE),
    "exit_in_handler": Kind(LOST, Victim.exit_in_handler, EXIT_CODE, RUNNING),
    "raised": Kind(LOST, Victim.raise_error, 1),
    "closed": Kind(LOST, Victim.close),
    "exec": Kind(LOST, Victim.exec, 0, RUNNING),
    "orphan": Kind(LOST, _forking(Victim.orphan, "python"), -signal.SIGKILL, RUNNING),
    "orphan_of_libc": Kind(LOST, _forking(Victim.orphan, "libc"), -signal.SIGKILL, RUNNING),
    "two_killed": Kind(LOST, _sending(signal.SIGKILL), -signal.SIGKILL, (*CALLING, CLOSE)),
    "two_raised": Kind(LOST, Victim.raise_error, 1),
    "in_prange": Kind(INTERRUPTED, Victim.in_prange),
    "interrupted": Kind(INTERRUPTED, _sending(signal.SIGINT), 0, (START, *RUNNING)),
    "alarmed": Kind(INTERRUPTED, Victim.alarm, 0, RUNNING),
    "late": Kind(LATE, Victim.late),
    "stopped": Kind(LATE, _sending(signal.SIGSTOP), 0, (STEP,)),  # a survivor lets it go on
    "astray_operation": Kind(ASTRAY, _astray("barrier"), operation="allreduce"),
    "astray_length": Kind(ASTRAY, _astray("allreduce", 3001), operation="allreduce"),
    "astray_dtype": Kind(ASTRAY, _astray("allreduce", dtype="i8"), operation="allreduce"),
    "astray_op": Kind(ASTRAY, _astray("allreduce", op=ReduceOp.MAX), operation="allreduce"),
    "astray_root": Kind(ASTRAY, _astray("broadcast", root=1), operation="broadcast"),
    "signals": Kind(NOTHING, Victim.signals, 0, (START, *CALLING, CLOSE)),
    "children": Kind(NOTHING, Victim.children, 0, RUNNING),
    "use_in_child": Kind(REFUSED, _forking(Victim.use_in_child, "python"), 0, RUNNING),
    "use_in_child_of_libc": Kind(REFUSED, _forking(Victim.use_in_child, "libc"), 0, RUNNING),
    "fork_in_handler": Kind(REFUSED, _forking(Victim.fork_in_handler, "python"), 0, RUNNING),
    "fork_of_libc_in_handler": Kind(REFUSED, _forking(Victim.fork_in_handler, "libc"), 0, RUNNING),
    "second_thread": Kind(REFUSED, Victim.second_thread, operation="meet"),
    "descriptors": Kind(SHORT, Victim.descriptors, 0, RUNNING),
    "memory": Kind(SHORT, Victim.memory, 0, RUNNING),
    "paused": Kind(NOTHING, moments=(STEP, REGION, CLOSE), signal=signal.SIGSTOP),
    "suspended": Kind(NOTHING, moments=(STEP,), signal=signal.SIGSTOP),
    "tiny_memory": Kind(SHORT),
    "unauthenticated": Kind(NOTHING),
    "full_stdout": Kind(UNSAID, Victim.speak),
    "fifo": Kind(PLANTED, moments=(START,)),
    "launcher_killed": Kind(ENDED, signal=signal.SIGKILL),
    "launcher_terminated": Kind(ENDED, signal=signal.SIGTERM),
    "launcher_interrupted": Kind(ENDED, signal=signal.SIGINT),
    "launcher_paused": Kind(NOTHING, signal=signal.SIGSTOP),
}
