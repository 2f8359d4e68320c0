"""The core's own counter of time: read in a few nanoseconds, and the same for all processes.

x86-64: the time stamp counter. aarch64: the virtual counter, which is read by its name, because
LLVM's intrinsic for a counter reads a register that traps there. The length of a tick follows from
two moments, at each of which ticks and the monotonic clock are read; the journal keeps the first
moment (``collective/seeing/journal.py``).

Sources: "LLVM Language Reference" on llvm.readcyclecounter and llvm.read_volatile_register; Intel's
manual, volume 3, "Time-Stamp Counter" (invariant TSC); Arm's manual on CNTVCT_EL0.
"""

import time

from cobre_kernels.machine.compiled import instruction


@instruction
def ticks():
    """Return the ticks of the counter, which only grow."""
    return time.monotonic_ns()
