"""How a rank fails a collective over shared memory."""

from cobre_kernels.collective.calls import BodyStatus
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.shm.control import HAS_FAILED
from cobre_kernels.shm.reading import await_writers
from cobre_kernels.shm.step import announce, record_calls


@kernel(COMM, BodyStatus)
def abandon_body(comm, call):
    """Keep the call of every rank, and tell the other ranks that this rank has failed.

    When this kernel returns, no rank writes to an array of this rank any more.
    """
    record_calls(comm)
    announce(comm, HAS_FAILED)
    await_writers(comm)
    return OK
