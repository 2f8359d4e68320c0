"""The verbs that move data, by MPI's blocking collectives: they end when MPI ends them."""

from cobre_kernels.collective.comm import COMM
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.mpi import calls
from cobre_kernels.nodes.verbs import Cast, Gather, Scatter


@kernel(COMM, Gather)
def allgatherv_kernel(comm, call):
    """Gather parts in place, with 64-bit counts where C ints do not reach."""
    nodes = comm.nodes
    reach = 0
    for node in range(nodes.nodes):
        reach = max(reach, nodes.given_at[node] + nodes.given[node])
    return calls.allgatherv(comm, call.buffer, reach > calls.LARGEST_INT)


@kernel(COMM, Cast)
def broadcast_kernel(comm, call):
    """Broadcast a buffer."""
    return calls.bcast(comm, call.buffer, call.size_bytes, call.root_node)


@kernel(COMM, Scatter)
def alltoallv_kernel(comm, call):
    """Exchange parts."""
    return calls.alltoallv(comm, call.send, call.recv)
