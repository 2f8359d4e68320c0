"""The kinds of faults that only the campaign has; they are added to the one table of kinds."""

import signal

from cobre_comm import ReduceOp
from cobre_comm.testing.cases.faults.fault import CLOSE, LAST, REGION, START, STEP
from cobre_comm.testing.cases.faults.kinds import (
    INTERRUPTED,
    KINDS,
    LATE,
    LOST,
    NOTHING,
    Kind,
    sending,
)
from cobre_comm.testing.cases.faults.strike import Victim
from tests.campaign import strike

ASTRAY = "astray"  # all ranks learn which rank made which call
SHORT = "short"  # all ranks succeed, or all learn that memory is missing, or the victim fails
ENDED = "ended"  # no rank is left
UNSAID = "unsaid"  # all ranks succeed; the launcher says that output is missing, and fails
FAILED = "failed"  # the launcher ends the job at once, with the code of the victim

OUTSIDE = Victim.now  # notes the moment; a process outside reads the account, and strikes
KINDS |= {
    "raised": Kind(LOST, strike.raise_error, 1),
    "raised_oddly": Kind(LOST, strike.raise_odd_error, 1),
    "float_mode": Kind(NOTHING, strike.change_float_mode),
    "frozen": Kind(NOTHING, strike.freeze_time),
    "threads_first": Kind(NOTHING, strike.load_in_threads),
    "exec": Kind(LOST, strike.become_another_program),
    "two_killed": Kind(LOST, sending(signal.SIGKILL), -signal.SIGKILL),
    "two_raised": Kind(LOST, strike.raise_error, 1),
    "in_prange": Kind(INTERRUPTED, strike.in_prange, meets="InvalidCommunicator"),
    "astray_operation": Kind(ASTRAY, strike.astray("barrier"), operation="allreduce"),
    "astray_length": Kind(ASTRAY, strike.astray("allreduce", 3001), operation="allreduce"),
    "astray_dtype": Kind(ASTRAY, strike.astray("allreduce", dtype="i8"), operation="allreduce"),
    "astray_op": Kind(ASTRAY, strike.astray("allreduce", op=ReduceOp.MAX), operation="allreduce"),
    "astray_root": Kind(ASTRAY, strike.astray("broadcast", root=1), operation="broadcast"),
    "descriptors": Kind(SHORT, strike.descriptors),
    "no_descriptor": Kind(SHORT, strike.no_descriptor),
    "memory": Kind(SHORT, strike.memory),
    "late_with_pipe": Kind(LATE, strike.late_with_pipe),
    "killed_early": Kind(FAILED, strike.die_early, -signal.SIGKILL),
    "paused": Kind(NOTHING, OUTSIDE),
    "suspended": Kind(NOTHING, OUTSIDE),
    "tiny_memory": Kind(SHORT, OUTSIDE),
    "unauthenticated": Kind(NOTHING, OUTSIDE),
    "full_stdout": Kind(UNSAID, strike.speak),
    "launcher_killed": Kind(ENDED, OUTSIDE),
    "launcher_terminated": Kind(ENDED, OUTSIDE),
    "launcher_interrupted": Kind(ENDED, OUTSIDE),
    "launcher_paused": Kind(NOTHING, OUTSIDE),
}
# The signals that a process outside sends.
SIGNALS = {
    "paused": signal.SIGSTOP,
    "suspended": signal.SIGSTOP,
    "launcher_killed": signal.SIGKILL,
    "launcher_terminated": signal.SIGTERM,
    "launcher_interrupted": signal.SIGINT,
    "launcher_paused": signal.SIGSTOP,
}
ANY = (START, STEP, REGION, CLOSE, LAST)
RUNNING = (STEP, REGION)
# LAST is not for kinds that raise in a handler, because Python ignores an exception in a __del__.
CALLING = (STEP, REGION, LAST)
# The moments at which each kind can strike. The faults that are drawn depend on the order of these
# rows.
WHEN = {
    "killed": ANY,
    "terminated": ANY,
    "crashed": ANY,
    "exit_0": (STEP,),
    "exit_code": (STEP,),
    "exit_at_once": (STEP,),
    "exit_in_handler": RUNNING,
    "raised": (STEP,),
    "closed": (STEP,),
    "exec": RUNNING,
    "orphan": RUNNING,
    "orphan_of_libc": RUNNING,
    "two_killed": (*CALLING, CLOSE),
    "two_raised": (STEP,),
    "in_prange": (STEP,),
    "interrupted": (START, *RUNNING),
    "alarmed": RUNNING,
    "late": (STEP,),
    "stopped": (STEP,),
    "astray_operation": (STEP,),
    "astray_length": (STEP,),
    "astray_dtype": (STEP,),
    "astray_op": (STEP,),
    "astray_root": (STEP,),
    "signals": (START, *CALLING, CLOSE),
    "children": RUNNING,
    "use_in_child": RUNNING,
    "use_in_child_of_libc": RUNNING,
    "fork_in_handler": RUNNING,
    "fork_of_libc_in_handler": RUNNING,
    "second_thread": (STEP,),
    "descriptors": RUNNING,
    "memory": RUNNING,
    "paused": (STEP, REGION, CLOSE),
    "suspended": (STEP,),
    "tiny_memory": (STEP,),
    "unauthenticated": (STEP,),
    "full_stdout": (STEP,),
    "launcher_killed": (STEP,),
    "launcher_terminated": (STEP,),
    "launcher_interrupted": (STEP,),
    "launcher_paused": (STEP,),
    "no_descriptor": RUNNING,
    "late_with_pipe": (STEP,),
    "killed_early": (START,),
    "raised_oddly": (STEP,),
    "float_mode": (STEP,),
    "frozen": (STEP,),
    "threads_first": (START,),
}
