"""Barrier: headers to rank 0 and back. Also the agreement on other calls that move no data."""

from cobre_kernels.collective.calls import Barrier
from cobre_kernels.collective.comm import COMM
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.tcp.progress.pause import begin_step
from cobre_kernels.tcp.star import BARRIER_TAGS, agree


@kernel(COMM, Barrier)
def barrier_body(comm, call):
    """Agree."""
    begin_step(comm)
    return agree(comm, BARRIER_TAGS)
