"""Outcomes of a kernel; ``cobre_comm.failure`` turns them into exceptions."""

from cobre_kernels.machine.kernel import RAISED

OK = 0

# The communicator stays usable: refused before any communication.
UNUSUAL_ARGUMENTS = -1  # to the slow path, which explains or converts
LENGTHS_DIFFER = 1  # allreduce: send.size != recv.size, or zero
SEND_NOT_COUNT = 2  # allgatherv: send.size != counts[rank]
BLOCK_OUTSIDE = 3  # allgatherv: a block reaches outside recv
BLOCKS_OVERLAP = 4  # allgatherv: two blocks overlap
BUFFERS_OVERLAP = 5  # send and recv share memory in a way that is not allowed
WRONG_TABLES = 6  # len(counts) or len(displs) is not size
BAD_ROOT = 7
BAD_OP = 8
BUSY_ELSEWHERE = 9  # another thread is inside a collective of this communicator
UNALIGNED = 10
NO_MEMORY = RAISED  # an exact sum has none for its buckets

# Refused because of the state of the communicator.
IS_BROKEN = 20
IS_CLOSED = 21
IS_FORKED = 22
IS_FINALIZED = 23

# The collective failed and the communicator is broken from now on.
LOST_PEER = 40
TIMED_OUT = 41
DISAGREE = 42
INTERRUPTED = 43
MPI_FAILED = 44

FIRST_BREAKING = LOST_PEER
