"""The core's own counter of time: quick to read, and the same for all processes.

On x86-64 it is the time stamp counter. On aarch64 it is the virtual counter, which is read by its
name, because LLVM's intrinsic for a counter reads a register that traps there. The length of a tick
follows from two moments, at each of which ticks and the monotonic clock are read; the journal keeps
the first moment (``collective/seeing/journal.py``).

Sources: "LLVM Language Reference" on llvm.readcyclecounter and llvm.read_volatile_register; Intel's
manual, volume 3, "Time-Stamp Counter" (invariant TSC); Arm's manual on CNTVCT_EL0.
"""

import time

from cobre_kernels.machine.compiled import instruction


@instruction
def ticks():
    """Return the ticks of the counter, which never decrease."""
    return time.monotonic_ns()
