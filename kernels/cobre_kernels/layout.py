"""Where every word lives: the shared control region, and the private state of one communicator.

All words are 64-bit integers; offsets are in bytes. Words that different ranks write are 128 bytes
apart (two 64-byte lines, because adjacent lines are prefetched as a pair).

Shared control region (shm; one per communicator, at the start of its segment)::

    0                 header                        HEADER_BYTES
    HEADER_BYTES      one block per rank            size * RANK_BYTES
    (page aligned)    one collective buffer per rank    size * buffer_bytes

    header          written by  meaning
    PUBLISHED       rank 0      UNFINISHED, then MAGIC once the rest of the header is valid
    VERSION         rank 0      LAYOUT_VERSION of the writer
    SIZE            rank 0      number of ranks
    BUFFER_BYTES    rank 0      bytes of collective buffer per rank
    OWNER_PID       rank 0      process id of rank 0 in its own PID namespace
    READY           rank 0      1 once all ranks have attached and the name is unlinked

    rank block      written by  meaning
    PID             its rank    process id once attached, 0 before
    CONDITION       its rank    MEMBER, then CLOSED or FAILED for ever
    SLEEPERS        the others  how many ranks sleep until this rank arrives
    CELLS           its rank    two cells, for even and for odd generations

    cell            meaning
    ARRIVED         generation of the last step of this parity that the rank has entered
    KIND            what it called: operation, dtype, op or root (see kind.py)
    LENGTH          how much: bytes, or a hash of counts and displacements
    DETAIL          the rank's own number of elements, for messages only
    PAYLOAD         up to INLINE_BYTES of data, so that a small message moves with its flag

A *generation* numbers the steps of a communicator: 1, 2, 3, ... A *step* is: fill the cell and the
buffer of this generation's parity, publish ARRIVED, wait until all ranks have published theirs. A
rank can be at most one generation ahead of another, so what it writes for generation g + 2 cannot
overwrite what somebody still reads of generation g: two parities are enough, and one wait per step.

A *chunk* is the part of a payload that one step moves, a *slot* the half of a rank's collective
buffer that holds its chunk, a *stripe* the part of a chunk that one rank folds. A buffer is::

    slot of even generations | slot of odd | result stripe of even | result stripe of odd
"""

WORD_BYTES = 8
LINE_BYTES = 128
PAGE_BYTES = 4096

LAYOUT_VERSION = 1
MAGIC = 0x314D4D4F43455243  # "CRECOMM1", little-endian
UNFINISHED = 0x304D4D4F43455243  # "CRECOMM0"

# Header.
PUBLISHED = 0
VERSION = 8
SIZE = 16
BUFFER_BYTES = 24
OWNER_PID = 32
READY = LINE_BYTES
HEADER_BYTES = 2 * LINE_BYTES

# Rank block.
PID = 0
CONDITION = 8
SLEEPERS = LINE_BYTES
CELLS = 2 * LINE_BYTES
RANK_BYTES = 4 * LINE_BYTES

MEMBER = 0
CLOSED = 1
FAILED = 2

# Cell.
ARRIVED = 0
KIND = 8
LENGTH = 16
DETAIL = 24
PAYLOAD = 32
CELL_BYTES = LINE_BYTES
INLINE_BYTES = CELL_BYTES - PAYLOAD

# Private state of one communicator: an int64 array in the memory of its own process.
GUARD = 0  # IDLE, BUSY or why no collective may begin
RANK = 8
COMM_SIZE = 16
CONTROL = 24  # address of the shared control region
BUFFERS = 32  # address of rank 0's collective buffer
BUFFER_STRIDE = 40  # bytes from one rank's buffer to the next
CHUNK_BYTES = 48  # bytes of a slot
GENERATION = 56  # generation of the last step entered
TIMEOUT_NS = 64  # longest wait for a live peer, 0 = no limit
SPIN_NS = 72  # how long a wait spins
YIELD_NS = 80  # how long it then yields the core
PORTABLE = 88  # 1: sleep and look instead of futex
LIVENESS_FD = 96  # file on whose byte r rank r holds a record lock
SCRATCH = 104  # 4 words for timespec and struct flock
PENDING_EXCEPTION = 136  # type, value and traceback that a signal handler raised
FAILURE = 160  # status of the collective that broke the communicator
FAILURE_KIND = 168  # what this rank called then
FAILURE_NS = 176  # how long it had waited
KERNELS = 184  # addresses of the backend's kernels, in the order of the next table
ARRAY_TYPE = 216  # address of numpy.ndarray, 0 if its layout is not the one doors.py knows
BACKEND = 224  # which backend, for messages
WAIT_GENERATION = 232  # step in which this rank last blocked
WAIT_BEGAN_NS = 240  # when it first did; the timeout counts from here, whichever rank it awaits
FILLS_TO_STREAM = 248  # how many more chunks this rank writes past the caches (shm/slot.py)
STREAM_SPAN = 256  # and how many it will after the next slow fill
LINKS = 264  # address of the table of links (tcp/table.py) or of MPI (mpi/table.py)
IS_LEADER = 272  # 1: this rank populates a region as a whole
MPI_ERROR = 280  # the code that MPI gave
EXACT_ADD_KERNEL = 288  # addresses of the kernels of exact_sum.py, the same for all backends
EXACT_ROUND_KERNEL = 296
FOLD_KERNEL = 304  # and of fold.py
SHARED_KERNELS = 312  # of what the backend's kernels share: tcp/shared.py, mpi/shared.py
RANK_RECORDS = 336  # one record per rank, filled at a failure

SYNCHRONISE_KERNEL = KERNELS
BROADCAST_KERNEL = KERNELS + 8
ALLREDUCE_KERNEL = KERNELS + 16
ALLGATHERV_KERNEL = KERNELS + 24

LOCAL, SHM, TCP, MPI = range(4)

IDLE = 0
BUSY = 1
GUARD_BROKEN = 2
GUARD_CLOSED = 3
GUARD_FORKED = 4
GUARD_FINALIZED = 5  # MPI has been finalized

# Record of a rank at a failure.
REASON = 0
RECORD_KIND = 8
RECORD_LENGTH = 16
RECORD_DETAIL = 24
RECORD_BYTES = 32

ARRIVED_IN_TIME = 0
LATE = 1
DIED = 2
LEFT = 3  # closed its communicator
GAVE_UP = 4  # failed in an earlier collective, or was interrupted
GARBLED = 5  # sent bytes that are not of the protocol
UNREACHABLE = 6  # its machine, or the network, does not answer


def state_words(size):
    """Number of int64 words of the private state of a communicator of ``size`` ranks."""
    return (RANK_RECORDS + size * RECORD_BYTES) // WORD_BYTES


def buffers_offset(size):
    """Offset of the first collective buffer in a segment of ``size`` ranks."""
    return -(-(HEADER_BYTES + size * RANK_BYTES) // PAGE_BYTES) * PAGE_BYTES


def chunk_bytes(buffer_bytes):
    """Bytes of a slot: two slots and two result stripes of half that size fill a buffer."""
    return buffer_bytes // 3 // LINE_BYTES * LINE_BYTES
