"""The core's own counter of time: a few nanoseconds to read, and the same for all processes.

x86-64: the time stamp counter. aarch64: the virtual counter, by name, because there LLVM's own
intrinsic reads a register that traps. How long a tick is follows from two readings of ticks and the
monotonic clock; the journal keeps the first (``collective/seeing/journal.py``).

Sources: "LLVM Language Reference" on llvm.readcyclecounter and llvm.read_volatile_register; Intel's
manual, volume 3, "Time-Stamp Counter" (invariant TSC); Arm's manual on CNTVCT_EL0.
"""

import time

from cobre_kernels.machine.compiled import instruction


@instruction
def ticks():
    """Ticks of the counter; they only grow."""
    return time.monotonic_ns()
