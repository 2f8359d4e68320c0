"""The record of one communicator, in the private memory of its process.

Kernels read and write the record. Only ``guard`` is shared, among the threads of that process.
"""

from cobre_kernels.collective.calls import OPERATIONS
from cobre_kernels.collective.reading import READING
from cobre_kernels.collective.regions import LOCATION
from cobre_kernels.machine.record import (
    Record,
    memory,
    own_rows,
    part,
    pointer,
    rows,
    shared,
    table,
    word,
)

SIZES = 32  # sizes of large calls, each a power of two, from 64 KiB on (shm/ways.py)
LARGE_ROWS = 2 * SIZES  # a row for each size, for each of the two operations that have ways

# Values of the guard. In a forked child, Linux sets the guard to FORKED (backends/comm_memory.py).
FORKED = 0
BUSY = 1
BROKEN = 2
CLOSED = 3
IDLE = 4
FINALIZED = 5  # MPI has been finalized

# Why a rank takes no part in a step.
PRESENT = 0  # the rank takes part, or may still arrive
LATE = 1
DIED = 2
LEFT = 3  # closed its communicator
GAVE_UP = 4  # failed in an earlier collective, or was interrupted
GARBLED = 5  # sent bytes that are not of the protocol
UNREACHABLE = 6  # its machine, or the network, does not answer

FAILURE = Record(
    "Failure",
    "What one rank did when a collective failed. The rank that keeps this record writes it.",
    reason=word("why the rank takes no part: PRESENT, LATE, DIED, LEFT, ..."),
    signature=word("signature of the rank's call; 0 if the call is not known"),
    compared=word("the second word of the rank's call that ranks compare"),
    count=word("the rank's own number of elements"),
)

FILLS = Record(
    "Fills",
    "How a rank fills memory that other ranks have read (shm/slot.py).",
    to_stream=word("how many of the next fills the rank streams"),
    span=word("how many fills the rank streams after the next slow fill"),
)

TRIED = Record(
    "Tried",
    "The times of the trials of one way, without the first one (shm/ways.py).",
    fastest_ns=word("the shortest time"),
    second_ns=word("the second shortest time, by which ways are compared"),
)

LARGE = Record(
    "Large",
    "The large calls of one operation, of sizes from one power of two to the next (shm/ways.py).",
    ways=word("how many ways such a call has"),
    calls=word("how many calls have succeeded since the trials last began"),
    until=word("after how many calls the ways are tried again"),
    way=word("the way of the calls after the trials"),
    began_ns=word("when the last rank had entered the newest trial; its time is not noted yet"),
    ended_ns=word("when this rank had ended that trial"),
    tried=own_rows(TRIED, "the times of each way", 4),
)

COLLECTIVE = Record(
    "Collective",
    "How one collective runs on this communicator: kernels, by address.",
    entry=word("the kernel that callers run"),
    body=word("the backend's algorithm, which the entry runs"),
)

# Whom a rank waits for: the ranks of its node or, if the rank is a leader, other leaders.
RANKS = 0
LEADERS = 1

PACE = Record(
    "Pace",
    "How this rank waits among RANKS, or among LEADERS (waiting/patience.py).",
    block_kernel=word("address of the kernel that sleeps"),
    look_around_kernel=word("address of the kernel that finds out which ranks are missing"),
    spin_ns=word("how long a wait spins"),
    yield_ns=word("how long the wait then yields the core"),
)

WAIT = Record(
    "Wait",
    "A wait for other ranks (waiting/patience.py).",
    among=word("RANKS or LEADERS"),
    awaited=word("the rank that is awaited, or ANOTHER_NODE"),
    act=word("what happens between two looks: SPIN, YIELD or BLOCK"),
    looks=word("looks since the clock was last read"),
    entered_ns=word("when the wait began to spin; 0: the clock has not been read since then"),
    began_ns=word("when the timeout of the wait began to count; 0: not yet"),
    clock_ns=word("when the clock was last read"),
    looked_ns=word("when the rank last looked around"),
    nap_ns=word("how long the last nap was"),
    is_long=word("1: other ranks see the wait, and the rank does not hold the GIL"),
    thread=word("the thread state with which the rank takes the GIL back"),
    must_stay=word("1: the wait may not end early, so the rank runs no signal handlers"),
    lines=word("how many lines on late ranks have been due"),
    queried_ns=word("when the timeout made this leader send a liveness query; 0: not yet"),
    asked_ns=word("when this leader sent a liveness query for a line on late ranks; 0: not yet"),
    # Among the ranks of a node.
    generation=word("the step that is awaited; one timeout covers the whole step"),
    node_rank=word("number of the awaited rank among those of its node"),
    grace_ns=word("how much longer than the timeout a follower waits: its leader gives up first"),
    naps=word("1: the wait blocks and does not yield, because the other rank copies for long"),
)

NODE = Record(
    "Node",
    "The ranks that share memory with this one: their segment, and the step that they are in.",
    rank=word("number of this rank among the ranks of the node"),
    size=word("number of ranks of the node"),
    names=table("for each rank of the node, its number in the communicator"),
    generation=word("number of the last step entered"),
    control=pointer("Control", "the control region of the segment"),
    buffers=word("address of the first rank's collective buffer"),
    buffer_stride=word("bytes from one rank's buffer to the next"),
    chunk_bytes=word("bytes of a slot"),
    cast_bytes=word("bytes that a step of a broadcast moves: one slot, or slots of several ranks"),
    liveness_fd=word("descriptor of a file; rank r of the node holds a record lock on its byte r"),
    slot_fills=part(FILLS, "the fills of this rank's slots"),
    region_fills=part(FILLS, "the fills of this rank's parts of outputs in regions"),
    shown_location=part(LOCATION, "where another rank's output lies, as that rank's cell says"),
    reading=part(READING, "how this rank reaches the arrays of other ranks"),
    forced_way=word("the way that each large call takes, for tests; -1: the fastest way"),
    measured=word("index in ``large`` of the large call under way; -1: it is not measured"),
    large=own_rows(LARGE, "a row for each operation and size (shm/ways.py)", LARGE_ROWS),
)

COMM = Record(
    "Comm",
    "Private state of one communicator, in the memory of its own process.",
    guard=shared("IDLE, BUSY, or why no collective may begin; threads acquire it"),
    rank=word("this rank"),
    size=word("number of ranks"),
    is_leader=word("1: this rank populates a region as a whole"),
    backend=word("number of the backend, for messages"),
    python=pointer("Python", "objects that the fast path from Python needs; 0: no fast path"),
    # Kernels, by address.
    collectives=own_rows(COLLECTIVE, "one for each operation, by its number", max(OPERATIONS) + 1),
    abandon_body=word("kernel that tells the other ranks that this rank has failed"),
    explain=word("Python function that keeps the exception which @njit code raises next"),
    fail=word("kernel that ends a failed collective"),
    refuse=word("kernel that ends a refused call, also in a thread that cannot raise"),
    fold_kernel=word("kernel that folds (reduction/fold.py)"),
    # The call under way; after a failure, the call that failed.
    stop=pointer("StopFlag", "the stop flag of this process"),
    signature=word("signature of this rank's call (calls.py); ranks compare it"),
    own=word("0, or the mark of a call that the library makes for itself (calls.py)"),
    compared=word("bytes, item size, hash of counts, number of a region, ...; ranks compare it"),
    count=word("this rank's own number of elements, for messages only"),
    refusal=word("if ``failure`` is UNSEEN: status of the refused call that no thread could raise"),
    size_bytes=word("bytes that this rank contributes, for the journal only"),
    sends=word("in a gatherv: address of a word for each rank, how many elements the rank sends"),
    gives_gil=word("1: collectives of this backend run without the GIL"),
    thread=word("thread state that takes the GIL back after this collective; 0: not given away"),
    # Seeing (seeing/journal.py).
    journal=pointer("Journal", "where this rank notes its calls"),
    journals=table("address of each rank's journal; 0: this process does not see that journal"),
    waits=rows("Waited", "how this rank waited for each rank, operation after operation"),
    unnoted=word("1: the journal lacks this call until the first step of the call has begun"),
    first_step=word("generation of the first step of the call, on this node"),
    came=word("ticks when the last rank had entered that step; 0: this rank waited for nobody"),
    last=word("the rank that came last, if this rank waited"),
    trace=pointer("Trace", "where calls gather on their way to a file (seeing/trace.py)"),
    trace_call=word("kernel that adds a call to the trace; 0: nobody has asked for a trace"),
    # Waiting (waiting/patience.py).
    pause_kernel=word("address of the kernel of the policy"),
    paces=own_rows(PACE, "the pace among RANKS, and that among LEADERS", 2),
    wait=part(WAIT, "the wait under way"),
    timeout_ns=word("longest wait for a live peer; 0: no limit"),
    portable=word("1: waits sleep and look in turn, without futex"),
    late_ns=word("after how long a line names the ranks that this rank waits for; 0: no line does"),
    late=table("for each rank: ns waited for it; 0: not late; < 0: a rank of its node is late"),
    write_late_line=word("Python callable that starts the thread which writes the line"),
    pulse=pointer("Pulse", "this rank's pulse as a leader (pulse.py); 0: there is only one node"),
    pulses=table("with several nodes: for each rank that leads this node, address of its beats"),
    pulses_count=word("how many ranks lead this node"),
    beats_heard=word("the beats of the awaited rank among these when this rank last looked"),
    scratch=memory(32, "a timespec, or a struct flock"),
    # Failing.
    failure=word("status of the collective that broke the communicator"),
    waited_ns=word("how long this rank had waited when that collective failed"),
    mpi_error=word("the error code that MPI gave"),
    pending_exception=memory(24, "type, value and traceback that a signal handler raised"),
    # Shared memory.
    node=part(NODE, "the ranks of this node"),
    regions=pointer("Regions", "the regions that this process has mapped"),
    location=part(LOCATION, "where this rank's output lies, in the collective under way"),
    # Several nodes, and the transport between them.
    nodes=pointer("Nodes", "the nodes, and what their leaders exchange"),
    links=pointer("Links", "links to the other leaders, over sockets"),
    mpi=pointer("Mpi", "the way to the other leaders, over MPI"),
    failures=own_rows(FAILURE, "one for each rank, filled at a failure"),
)
