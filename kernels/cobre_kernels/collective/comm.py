"""The record of one communicator, in the private memory of its process.

Kernels read and write it. Only ``guard`` is shared, among the threads of that process.
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

SIZES = 32  # powers of two, from that of the least large call on (shm/ways.py)
LARGE_ROWS = 2 * SIZES  # one for each operation that has ways, and each size

# Values of the guard. Linux gives a forked child this word as 0 (backends/comm_memory.py): FORKED.
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
    "What one rank did when a collective failed. Written by the rank that keeps it.",
    reason=word("why the rank takes no part: PRESENT, LATE, DIED, LEFT, ..."),
    signature=word("signature of its call; 0 if that is not known"),
    compared=word("the second word of its call that ranks compare"),
    count=word("its own number of elements"),
)

FILLS = Record(
    "Fills",
    "How a rank fills memory that other ranks have read (shm/slot.py).",
    to_stream=word("how many more fills it streams"),
    span=word("and how many it will after the next slow fill"),
)

TRIED = Record(
    "Tried",
    "What the trials of one way have taken, without the first trial (shm/ways.py).",
    fastest_ns=word("the shortest time"),
    second_ns=word("the second shortest time, by which ways are compared"),
)

LARGE = Record(
    "Large",
    "Large calls of one operation and one power of two of bytes (shm/ways.py).",
    ways=word("how many ways such a call has"),
    calls=word("how many calls have succeeded since the ways were last begun to be tried"),
    until=word("after how many calls the ways are tried again"),
    way=word("the way of the calls after the trials"),
    began_ns=word("when the last rank had entered the call that has no time yet"),
    ended_ns=word("when this rank had ended that call"),
    tried=own_rows(TRIED, "one for each way", 4),
)

COLLECTIVE = Record(
    "Collective",
    "How one collective runs on this communicator: kernels, by address.",
    entry=word("the kernel that callers run"),
    body=word("the backend's algorithm, which the entry runs"),
)

# Whom a rank waits for: the ranks of its node, or as a leader, other leaders.
RANKS = 0
LEADERS = 1

PACE = Record(
    "Pace",
    "How this rank waits among RANKS, or among LEADERS (waiting/patience.py).",
    block_kernel=word("kernel that sleeps, by address"),
    look_around_kernel=word("and the one that finds out which ranks are missing"),
    spin_ns=word("how long a wait spins"),
    yield_ns=word("how long it then yields the core"),
)

WAIT = Record(
    "Wait",
    "A wait for other ranks (waiting/patience.py).",
    among=word("RANKS or LEADERS"),
    awaited=word("the rank that is awaited, or ANOTHER_NODE"),
    act=word("what happens between two looks: SPIN, YIELD or BLOCK"),
    looks=word("looks since the clock was last read"),
    entered_ns=word("when it began to spin; 0: the clock has not been read since"),
    began_ns=word("when its timeout began to count; 0: not yet"),
    clock_ns=word("when the clock was last read"),
    looked_ns=word("when it last looked around"),
    nap_ns=word("how long the last nap was"),
    is_long=word("1: others see it, and it holds no GIL"),
    thread=word("the thread state with which it takes the GIL back"),
    must_stay=word("1: it may not end early, and hears no signal"),
    lines=word("how many lines on late ranks have been due"),
    queried_ns=word("when the others were asked whether they wait too; 0: not yet"),
    asked_ns=word("the same, for a line on late ranks"),
    # Among the ranks of a node.
    generation=word("the step that is awaited; one timeout covers it"),
    node_rank=word("number of the awaited rank among those of its node"),
    grace_ns=word("a follower waits so much longer than the timeout: its leader gives up first"),
    naps=word("1: it does not yield, because the other rank copies for long"),
)

NODE = Record(
    "Node",
    "The ranks that share memory with this one: their segment, and the step that they are in.",
    rank=word("number of this rank among them"),
    size=word("how many they are"),
    names=table("the number of each in the communicator"),
    generation=word("number of the last step entered"),
    control=pointer("Control", "the control region of the segment"),
    buffers=word("address of the first rank's collective buffer"),
    buffer_stride=word("bytes from one rank's buffer to the next"),
    chunk_bytes=word("bytes of a slot"),
    cast_bytes=word("bytes that a step of a broadcast moves: one slot, or those of several ranks"),
    liveness_fd=word("file on whose byte r the rank of number r here holds a record lock"),
    slot_fills=part(FILLS, "of this rank's slots"),
    region_fills=part(FILLS, "of its parts of outputs in regions"),
    shown_location=part(LOCATION, "where another rank's output lies, as its cell says"),
    reading=part(READING, "of the arrays of other ranks"),
    forced_way=word("the way that each large call takes, for tests; -1: the fastest one"),
    measured=word("index in ``large`` of the large call under way; -1: it is not measured"),
    large=own_rows(LARGE, "one for each operation and power of two (shm/ways.py)", LARGE_ROWS),
)

COMM = Record(
    "Comm",
    "Private state of one communicator, in the memory of its own process.",
    guard=shared("IDLE, BUSY, or why no collective may begin; threads acquire it"),
    rank=word("this rank"),
    size=word("number of ranks"),
    is_leader=word("1: this rank populates a region as a whole"),
    backend=word("number of the backend, for messages"),
    python=pointer("Python", "objects that the fast path from Python needs; 0: it has none"),
    # Kernels, by address.
    collectives=own_rows(COLLECTIVE, "one for each operation, by its number", max(OPERATIONS) + 1),
    abandon_body=word("tells the other ranks that this one has failed"),
    explain=word("Python function that keeps the exception which @njit code raises next"),
    fail=word("kernel that ends a failed collective"),
    refuse=word("kernel that ends a refused call, also in a thread that cannot raise"),
    fold_kernel=word("the fold of fold.py"),
    # The call under way; after a failure, the call that failed.
    stop=pointer("StopFlag", "of this process"),
    signature=word("signature of this rank's call (calls.py); ranks compare it"),
    own=word("0, or the mark of a call that the library makes for itself (calls.py)"),
    compared=word("its bytes, item size, hash of counts, number of a region, ...; likewise"),
    count=word("this rank's own number of elements, for messages only"),
    refusal=word("status of a refused call that no thread could raise; with UNSEEN"),
    size_bytes=word("bytes that it contributes, for the journal only"),
    sends=word("address of a word for each rank: how many elements it sends, in a gatherv"),
    gives_gil=word("1: collectives of this backend run without the GIL"),
    thread=word("thread state that takes the GIL back after this collective; 0: not given away"),
    # Seeing (seeing/journal.py).
    journal=pointer("Journal", "where this rank notes its calls"),
    journals=table("address of each rank's journal; 0: this process does not see it"),
    waits=rows("Waited", "how this rank waited for each one, operation after operation"),
    unnoted=word("1: the journal lacks this call until its first step has begun"),
    first_step=word("generation of the first step of the call, on this node"),
    came=word("ticks when the last rank had come to it; 0: this rank waited for nobody"),
    last=word("the rank that came last, if this one waited"),
    trace=pointer("Trace", "where calls gather on their way to a file (seeing/trace.py)"),
    trace_call=word("kernel that adds a call there; 0: nobody has asked for a trace"),
    # Waiting (waiting/patience.py).
    pause_kernel=word("the kernel of the policy, by address"),
    paces=own_rows(PACE, "among RANKS, and among LEADERS", 2),
    wait=part(WAIT, "under way"),
    timeout_ns=word("longest wait for a live peer; 0: no limit"),
    portable=word("1: sleep and look, without futex"),
    late_ns=word("after how long a line names the ranks that this one waits for; 0: none does"),
    late=table("of each rank: waited ns, for a late line; 0: not late; < 0: it or one of its node"),
    write_late_line=word("Python callable that starts the thread which writes the line"),
    pulse=pointer("Pulse", "of this rank, if it leads its node; 0: one node (waiting/pulse.py)"),
    pulses=table("address of the beats of each rank that leads this node, of several nodes"),
    pulses_count=word("how many these are"),
    beats_heard=word("the beats of one of them when this rank last looked"),
    scratch=memory(32, "a timespec, or a struct flock"),
    # Failing.
    failure=word("status of the collective that broke the communicator"),
    waited_ns=word("how long it had waited"),
    mpi_error=word("the code that MPI gave"),
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
