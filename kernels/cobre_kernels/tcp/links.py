"""The links of one communicator: records in the private memory of its process."""

from cobre_kernels.collective.comm import ARRIVED, FAILURE
from cobre_kernels.machine.record import (
    LINE_BYTES,
    Record,
    memory,
    own_rows,
    part,
    pointer,
    rows,
    word,
)
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp.frame import CONTROL_MESSAGE, HEADER

MEMBER = ARRIVED  # the condition of a peer; any other is the reason why it takes no further part
NOBODY = -1
NO_LINK = -1  # in place of a descriptor

# What the header of a peer's message says.
UNREAD = 0
AGREES = 1
DISAGREES = 2

STAGING_CHUNKS = 4  # of an allreduce along the chain; they fit a cache
CHUNK_BYTES = 256 * 1024  # of each at most; a multiple of every element's size

PEER = Record(
    "Peer",
    "The links to another rank.",
    line_bytes=LINE_BYTES,
    control_fd=word("descriptor of the control link; NO_LINK: none, or it has ended"),
    star_fd=word("descriptor of the star link; NO_LINK: none"),
    process_fd=word("readable once the process of the rank has ended; NO_LINK: cannot be known"),
    condition=word("MEMBER, or why the rank takes no further part"),
    completed=word("and the last step that it had completed then"),
    heard_ns=word("when it last told that it waits"),
    # The message to the rank, on the star.
    header=part(HEADER, "begins the message"),
    header_left=word("bytes of the header still to send"),
    payload=word("address of the payload still to send"),
    payload_left=word("bytes of it"),
    # The message from the rank, on the star.
    inbox=pointer("TcpHeader", "where the message comes in, followed by room for a payload"),
    filled=word("bytes that are here"),
    wanted=word("bytes that there will be if the ranks agree"),
    first_word=word("what the header begins with if the ranks agree"),
    agreement=word("UNREAD, AGREES or DISAGREES"),
    # The control message that comes in.
    control=part(CONTROL_MESSAGE, "what is here of it"),
    control_filled=word("how many bytes"),
)

CURSOR = Record(
    "Cursor",
    "How far one direction of the ring has come: in ring.py, or in chain.py.",
    prefix=memory(8, "first bytes of the frame under way"),
    prefix_left=word("bytes of the prefix still to move"),
    frame_left=word("bytes of payload still to move of this frame"),
    # ring.py
    block=word("rank whose block moves"),
    offset=word("bytes of the block that have moved"),
    done=word("bytes of payload that have moved in all"),
    total=word("bytes of payload that will have in the end"),
    # chain.py
    next_byte=word("address of the next byte of the frame"),
    is_result=word("1: the frame is a result; 0: a partial fold"),
    partials=word("chunks of partial folds that have moved"),
    partials_total=word("and will have in the end"),
    results=word("chunks of results that have moved; incoming: that are in recv"),
    results_total=word("and will have moved in the end"),
)

BLOCK = Record(
    "Block",
    "What one rank contributes to a payload on the ring.",
    begin=word("its address"),
    size_bytes=word("its length"),
)

VECTOR = Record(
    "Vector", "A struct iovec.", begin=word("address of the bytes"), count=word("how many")
)
MSGHDR = Record(
    "Msghdr",
    "A struct msghdr and what it gathers; 0 but for these.",
    name=word("no address: the socket is connected"),
    name_bytes=word("always 0"),
    vectors=word("address of gathered"),
    count=word("how many of them"),
    control=memory(24, "no control data, no flags; macOS needs less"),
    gathered=own_rows(VECTOR, "header or prefix, and payload", 2),
)
POLL = Record("Poll", "A struct pollfd.", entry=word("descriptor, events << 32, found << 48"))

LINKS = Record(
    "Links",
    "The links of one communicator over sockets.",
    transfer=word("kernel that moves messages on the star, by address"),
    advance=word("kernel that ends a progress step on the ring, by address"),
    star_bytes=word("largest payload that goes through rank 0"),
    gather_bytes=word("largest chunk of a gatherv"),
    outbox=word("address of star_bytes where rank 0 packs what it sends to all"),
    # The ring.
    ring_out=word("descriptor of the one-way link to the next rank"),
    ring_in=word("of the one from the previous rank"),
    wants_out=word("1: waits for room towards the next rank"),
    wants_in=word("1: waits for bytes from the previous rank"),
    awaited_out=word("the next rank if bytes are still to be sent to it, else NOBODY"),
    awaited_in=word("the previous rank if bytes are still to come from it, else NOBODY"),
    outgoing=part(CURSOR, "to the next rank"),
    incoming=part(CURSOR, "from the previous rank"),
    blocks=rows("Block", "ring.py: one for each rank"),
    staging=word("chain.py: address of STAGING_CHUNKS chunks of CHUNK_BYTES"),
    chunk_bytes=word("chain.py: bytes of a chunk of this payload"),
    # Waiting.
    idle_since=word("when this rank last moved a byte in this step; 0: it has just done so"),
    overdue_since=word("when the timeout of this wait was over; 0: not yet"),
    looked_ns=word("when it last looked for signals and control messages in this step; 0: not yet"),
    queried_ns=word("when it last sent a liveness query"),
    swept=word("the step in which it last read all control links"),
    polls=rows("Poll", "entries for poll(2): 3 for each rank and 2 more"),
    lone_poll=part(POLL, "an entry to wait for one descriptor"),
    # Control messages and failure reports.
    control=part(CONTROL_MESSAGE, "liveness query or goodbye to send"),
    report=pointer("ControlMessage", "a failure report, to send or come in"),
    report_rows=rows("Failure", "its rows, in the byte order of the network"),
    reported_status=word("status in the report of the earliest step, else OK"),
    reported_step=word("that step"),
    reported=rows("Failure", "its rows"),
    msghdr=part(MSGHDR, "for sendmsg(2)"),
    peers=own_rows(PEER, "one for each rank", begins_line=True),
)

FAILURE_BYTES = FAILURE.size_bytes


@routine
def is_coordinator(comm):
    """Tell whether this rank is the centre of the star."""
    return comm.rank == 0


@routine
def star_peers(comm):
    """Return the first rank that a star link leads to, and the one after the last."""
    return (1, comm.size) if comm.rank == 0 else (0, 1)


@routine
def next_rank(comm):
    """Return the rank that this one sends to on the ring."""
    return (comm.rank + 1) % comm.size


@routine
def previous_rank(comm):
    """Return the rank that this one receives from on the ring."""
    return (comm.rank + comm.size - 1) % comm.size
