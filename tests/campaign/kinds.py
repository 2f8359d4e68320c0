"""The kinds of faults of the campaign: the kinds of the table of cases, and more."""

import signal

from cobre_comm.testing.cases.faults import kinds
from cobre_comm.testing.cases.faults.fault import REGION, STEP
from cobre_comm.testing.cases.faults.kinds import INTERRUPTED, LATE, LOST, NOTHING, Kind, sending
from tests.campaign.fault import CLOSE, LAST, MOMENTS, START
from tests.campaign.strike import OddVictim

SHORT = "short"  # nothing, or all ranks alike are told that there is no memory; or the victim fails
ENDED = "ended"  # no rank is left
UNSAID = "unsaid"  # nothing, but the launcher says that output is missing, and fails
FAILED = "failed"  # the launcher ends the job at once, with the code of the victim
PLANTED = "planted"  # each rank meets the others, or says in time what stands in its way

OWN = {
    "raised": Kind(LOST, OddVictim.raise_error, 1),
    "exec": Kind(LOST, OddVictim.exec),
    "two_killed": Kind(LOST, sending(signal.SIGKILL), -signal.SIGKILL),
    "two_raised": Kind(LOST, OddVictim.raise_error, 1),
    "in_prange": Kind(INTERRUPTED, OddVictim.in_prange, meets="InvalidCommunicator"),
    "descriptors": Kind(SHORT, OddVictim.descriptors),
    "no_descriptor": Kind(SHORT, OddVictim.no_descriptor),
    "memory": Kind(SHORT, OddVictim.memory),
    "late_with_pipe": Kind(LATE, OddVictim.late_with_pipe),
    "killed_early": Kind(FAILED, OddVictim.die_early, -signal.SIGKILL),
    "paused": Kind(NOTHING, OddVictim.wait_outside),
    "suspended": Kind(NOTHING, OddVictim.wait_outside),
    "tiny_memory": Kind(SHORT, OddVictim.wait_outside),
    "unauthenticated": Kind(NOTHING, OddVictim.wait_outside),
    "full_stdout": Kind(UNSAID, OddVictim.speak),
    "fifo": Kind(PLANTED, OddVictim.wait_outside),
    "launcher_killed": Kind(ENDED, OddVictim.wait_outside),
    "launcher_terminated": Kind(ENDED, OddVictim.wait_outside),
    "launcher_interrupted": Kind(ENDED, OddVictim.wait_outside),
    "launcher_paused": Kind(NOTHING, OddVictim.wait_outside),
}
# What comes from outside.
SIGNALS = {
    "paused": signal.SIGSTOP,
    "suspended": signal.SIGSTOP,
    "launcher_killed": signal.SIGKILL,
    "launcher_terminated": signal.SIGTERM,
    "launcher_interrupted": signal.SIGINT,
    "launcher_paused": signal.SIGSTOP,
}
ANY = (*MOMENTS, LAST)
RUNNING = (STEP, REGION)
CALLING = (STEP, REGION, LAST)  # not where a handler raises: Python drops that in a __del__
# When each can strike; by this order a number stands for a fault.
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
    "fifo": (START,),
    "launcher_killed": (STEP,),
    "launcher_terminated": (STEP,),
    "launcher_interrupted": (STEP,),
    "launcher_paused": (STEP,),
    "no_descriptor": RUNNING,
    "late_with_pipe": (STEP,),
    "killed_early": (START,),
}
KINDS = {name: (OWN | kinds.KINDS)[name] for name in WHEN}
