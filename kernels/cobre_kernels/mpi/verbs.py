"""The verbs over MPI.

Each begins a nonblocking collective of MPI among the leaders, and then waits until it is complete.
"""

from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.mpi import calls
from cobre_kernels.mpi.waiting import complete
from cobre_kernels.nodes.verbs import Cast, Exchange, Gather, Scatter
from cobre_kernels.nodes.waiting import begin_verb, end_verb


@kernel(COMM, Exchange)
def exchange_kernel(comm, call):
    """Send this leader's header to every leader, with a small payload in it; receive theirs."""
    nodes = comm.nodes
    outcome = begin_verb(comm)
    if outcome == OK:
        if call.payload_bytes > 0:
            move(nodes.header.payload, call.payload, call.payload_bytes)
        headers = nodes.headers[0].address
        begun = calls.begin_allgather(comm, nodes.header.address, headers, call.size_bytes)
        outcome = complete(comm, begun)
    if outcome == OK and call.payload != 0:
        for node in range(nodes.nodes):
            move(nodes.landing[node], nodes.headers[node].payload, nodes.recv_bytes[node])
    return end_verb(comm, outcome)


@kernel(COMM, Gather)
def allgatherv_kernel(comm, call):
    """Gather blocks in place, with 64-bit counts where C ints do not reach."""
    nodes = comm.nodes
    reach = 0
    for node in range(nodes.nodes):
        reach = max(reach, nodes.block_at[node] + nodes.block_bytes[node])
    needs_large = reach > calls.LARGEST_INT
    outcome = begin_verb(comm)
    if outcome == OK:
        outcome = complete(comm, calls.begin_allgatherv(comm, call.buffer, needs_large))
    return end_verb(comm, outcome)


@kernel(COMM, Cast)
def broadcast_kernel(comm, call):
    """Broadcast the buffer of one leader."""
    outcome = begin_verb(comm)
    if outcome == OK:
        begun = calls.begin_bcast(comm, call.buffer, call.size_bytes, call.root_node)
        outcome = complete(comm, begun)
    return end_verb(comm, outcome)


@kernel(COMM, Scatter)
def alltoallv_kernel(comm, call):
    """Give each leader its part of ``send``, and get a part of ``recv`` from each."""
    outcome = begin_verb(comm)
    if outcome == OK:
        outcome = complete(comm, calls.begin_alltoallv(comm, call.send, call.recv))
    return end_verb(comm, outcome)
