"""Barrier: one step. The fence of a region and every agreement without data are one step too.

In the step each rank writes one cache line, and reads one cache line of every other rank.
"""

from cobre_kernels.collective.calls import Barrier, called
from cobre_kernels.collective.comm import COMM
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.shm.step import synchronise


@kernel(COMM, Barrier)
def barrier_body(comm, call):
    """Go through one step."""
    return synchronise(comm, called(comm))
