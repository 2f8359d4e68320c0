"""The verbs over MPI.

Each verb begins a nonblocking collective of MPI among the leaders, and then waits until the
collective is complete. There is one exception: large blocks are gathered around a ring of leaders,
by sends and receives. In Open MPI's own collective every leader sends to every other leader at
once, which takes up to 1.4 times as long (``docs/design/nodes.md``).
"""

from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.mpi import calls
from cobre_kernels.mpi.waiting import complete
from cobre_kernels.nodes.records import longest_block
from cobre_kernels.nodes.verbs import Cast, Exchange, Gather, Scatter
from cobre_kernels.nodes.waiting import begin_verb, end_verb

RING_BYTES = 64 * 1024  # for shorter blocks, a ring takes longer than MPI's collective
RING_NODES = 3  # the fewest: each of two leaders sends one message, with a ring or without


@kernel(COMM, Exchange)
def exchange_kernel(comm, call):
    """Send this leader's header to every leader, with any small payload; receive their headers."""
    nodes = comm.nodes
    outcome = begin_verb(comm)
    if outcome == OK:
        if call.payload_bytes > 0:
            move(nodes.header.payload, call.payload, call.payload_bytes)
        headers = nodes.headers[0].address
        begun = calls.begin_allgather(comm, nodes.header.address, headers, call.size_bytes)
        outcome = complete(comm, comm.mpi.request, begun)
    if outcome == OK and call.payload != 0:
        for node in range(nodes.nodes):
            move(nodes.landing[node], nodes.headers[node].payload, nodes.recv_bytes[node])
    return end_verb(comm, outcome)


@routine
def _gather_around(comm, buffer):
    """Move blocks around the ring: send this leader's block, then each block that has arrived."""
    nodes, mpi, outcome = comm.nodes, comm.mpi, OK
    own, count = nodes.own_node, nodes.nodes
    for step in range(count - 1):
        given, taken = (own - step) % count, (own - step - 1) % count
        if outcome == OK:
            place = buffer + nodes.block_at[taken]
            outcome = calls.begin_receive(comm, place, nodes.block_bytes[taken], (own - 1) % count)
        if outcome == OK:
            place = buffer + nodes.block_at[given]
            begun = calls.begin_give(comm, place, nodes.block_bytes[given], (own + 1) % count)
            outcome = complete(comm, mpi.sending, begun)
        if outcome == OK:
            outcome = complete(comm, mpi.request, OK)
    return outcome


@kernel(COMM, Gather)
def allgatherv_kernel(comm, call):
    """Gather blocks in place, with 64-bit counts if C ints do not suffice."""
    nodes = comm.nodes
    reach = 0
    for node in range(nodes.nodes):
        reach = max(reach, nodes.block_at[node] + nodes.block_bytes[node])
    needs_large = reach > calls.LARGEST_INT
    outcome = begin_verb(comm)
    if outcome == OK:
        if nodes.nodes >= RING_NODES and longest_block(nodes) >= RING_BYTES and not needs_large:
            outcome = _gather_around(comm, call.buffer)
        else:
            begun = calls.begin_allgatherv(comm, call.buffer, needs_large)
            outcome = complete(comm, comm.mpi.request, begun)
    return end_verb(comm, outcome)


@kernel(COMM, Cast)
def broadcast_kernel(comm, call):
    """Broadcast the buffer of one leader."""
    outcome = begin_verb(comm)
    if outcome == OK:
        begun = calls.begin_bcast(comm, call.buffer, call.size_bytes, call.root_node)
        outcome = complete(comm, comm.mpi.request, begun)
    return end_verb(comm, outcome)


@kernel(COMM, Scatter)
def alltoallv_kernel(comm, call):
    """Give each leader its part of ``send``, and get a part of ``recv`` from each."""
    outcome = begin_verb(comm)
    if outcome == OK:
        begun = calls.begin_alltoallv(comm, call.send, call.recv)
        outcome = complete(comm, comm.mpi.request, begun)
    return end_verb(comm, outcome)
