"""Outcomes of a kernel; ``cobre_comm.failure`` turns them into exceptions."""

OK = 0

# The call was refused before any communication, so the communicator stays usable.
UNUSUAL_ARGUMENTS = -1  # the call goes to the slow path, which explains or converts the arguments
LENGTHS_DIFFER = 1  # allreduce: send.size and recv.size differ, or are zero
SEND_NOT_COUNT = 2  # allgatherv: send.size is not counts[rank]
BLOCK_OUTSIDE = 3  # allgatherv: a block reaches outside recv
BLOCKS_OVERLAP = 4  # allgatherv: two blocks overlap
BUFFERS_OVERLAP = 5  # send and recv share memory in a way that is not allowed
WRONG_TABLES = 6  # the length of counts or of displs is not size
BAD_ROOT = 7
BAD_OP = 8
BAD_PHASE = 17  # enter: no phase has this number
BUSY_ELSEWHERE = 9  # another thread is inside a collective of this communicator
UNALIGNED = 10
REFUSED = 12  # in @njit code: a method does not take the types of the arguments
NEGATIVE = 13  # allgatherv: a count or a displacement is negative
# The caller of an entry, not the entry, notices these three problems. The caller then passes a call
# in which minus the status is in place of a length.
NOT_CONTIGUOUS = 14
READ_ONLY = 15
UNFIT = 16  # a count or a displacement does not fit 64 bits
NO_MEMORY = 11  # an exact sum could not get memory for its buckets

# The call was refused because of the state of the communicator.
IS_BROKEN = 20
IS_CLOSED = 21
IS_FORKED = 22
IS_FINALIZED = 23
REGION_IS_CLOSED = 24
WORK_IS_CLOSED = 25
WORK_IS_RESET = 26  # another thread of this rank resets the work, or has done so during the claim

# For use inside a body (shm/region.py): outputs have several locations, so data go through slots.
USE_SLOTS = 30

# The collective has failed, and the communicator is broken from now on.
LOST_PEER = 40
TIMED_OUT = 41
DISAGREE = 42
INTERRUPTED = 43
MPI_FAILED = 44
UNSEEN = 45  # a call was refused in a thread that cannot raise
SHRUNK = 46  # no collective has failed: shrink has broken the communicator

FIRST_BREAKING = LOST_PEER
