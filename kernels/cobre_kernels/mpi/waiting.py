"""How a leader waits for MPI: the leader polls its requests.

While data move, a leader yields the core but does not nap, because MPI moves data only when it is
polled. ``nodes/waiting.py`` decides which ranks are lost or late.

If a wait ends early, its request stays, and MPI may complete the request at any later time. So a
wait may end early only if its request touches nothing but memory that exists as long as the
process: the headers of an exchange, and data in staging buffers. A wait for data in the buffers of
callers must not end early, because MPI may write to those buffers until the request is complete.
The wait for the commits before such data must not end early either.
"""

from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.seeing.journal import ANOTHER_NODE
from cobre_kernels.collective.status import OK
from cobre_kernels.collective.waiting.patience import Patience, nap, pause
from cobre_kernels.machine import libc
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.mpi import calls
from cobre_kernels.nodes.protocol import COMMITTED, MOVING

LOOKS_PER_CLOCK = 16
UNFINISHED = -1


@routine
def complete(comm, request, outcome):
    """Wait until a request is complete, if ``outcome`` says that it has begun; return a status."""
    comm.wait.awaited = ANOTHER_NODE
    found = UNFINISHED
    while outcome == OK and found == UNFINISHED:
        found = _look(comm, request)
        if found == UNFINISHED:
            outcome = pause(comm, LOOKS_PER_CLOCK)
    return found if outcome == OK else outcome


@routine
def _look(comm, request):
    """Return OK, UNFINISHED or MPI_FAILED."""
    mpi = comm.mpi
    outcome = calls.status_of_mpi(comm, calls.test(mpi, request))
    return UNFINISHED if outcome == OK and not calls.flag_is_set(mpi) else outcome


@kernel(COMM, Patience)
def block_kernel(comm, call):
    """Nap; but while data move, only yield."""
    if comm.nodes.state == MOVING or comm.nodes.state == COMMITTED:
        libc.sched_yield()
    else:
        nap(comm, call.longest_ns)
    return OK
