"""The links between leaders: records in the private memory of a leader's process."""

from cobre_kernels.collective.reading import VECTOR
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.record import (
    LINE_BYTES,
    Record,
    memory,
    own_rows,
    part,
    pointer,
    rows,
    table,
    word,
)
from cobre_kernels.tcp.frame import CONTROL_MESSAGE, FRAME_HEADER

NOBODY = -1
NO_LINK = -1  # in place of a descriptor of a link that does not exist

STAGING_CHUNKS = 4  # how many chunks of the chain lie in private memory; together they fit a cache
CHUNK_BYTES = 256 * 1024  # the most bytes of such a chunk; a multiple of every element's size

PEER = Record(
    "Peer",
    "The links to the leader of another node.",
    line_bytes=LINE_BYTES,
    control_fd=word("descriptor of the control link; NO_LINK: no link, or the link has ended"),
    data_fd=word("descriptor of the data link; NO_LINK: the row is that of this leader itself"),
    process_fd=word("descriptor, readable after that leader's process has ended; or NO_LINK"),
    # The message to that leader.
    header=part(FRAME_HEADER, "the header of the message"),
    header_left=word("bytes of the header still to send"),
    payload=word("address of the payload still to send"),
    payload_left=word("bytes of the payload still to send"),
    # The message from that leader.
    inbox=part(FRAME_HEADER, "the header of the message"),
    landing=word("address to which the payload goes"),
    filled=word("bytes of header and payload that have arrived"),
    wanted=word("bytes of header and payload that the message has in all"),
    first_word=word("what the first word of the header has to be if the leaders agree"),
    surplus=word("address of bytes that arrived behind the header, if the leaders disagree"),
    surplus_bytes=word("how many of these bytes are still to be read"),
    # The control message that arrives.
    control=part(CONTROL_MESSAGE, "the bytes of the message that have arrived"),
    control_filled=word("how many bytes of the message have arrived"),
)

CURSOR = Record(
    "Cursor",
    "How much has moved in one direction of the ring or of the chain.",
    prefix=memory(8, "the prefix of the frame under way"),
    prefix_left=word("bytes of the prefix still to move"),
    frame_left=word("bytes of this frame's payload still to move"),
    # ring.py
    block=word("the node that the moving block belongs to"),
    offset=word("bytes of the block that have moved"),
    done=word("bytes of payload that have moved in all"),
    total=word("bytes of payload that have to move in all"),
    # chain.py
    next_byte=word("address of the next byte of the frame"),
    is_result=word("1: the frame is a result; 0: a partial fold"),
    partials=word("number of chunks of partial folds that have moved"),
    partials_total=word("number of chunks of partial folds that have to move"),
    results=word("number of chunks of results that have moved; of incoming: that are in place"),
    results_total=word("number of chunks of results that have to move"),
)

BLOCK = Record(
    "Block",
    "The bytes that one node contributes to a payload on the ring.",
    begin=word("address of the block"),
    size_bytes=word("bytes of the block"),
)

MSGHDR = Record(
    "Msghdr",
    "A struct msghdr and its two pieces of memory; its other words are 0.",
    name=word("0, no address of a receiver, because the socket is connected"),
    name_bytes=word("always 0"),
    vectors=word("address of the word gathered"),
    count=word("number of pieces of memory"),
    control=memory(24, "zeros: no control data and no flags; macOS needs fewer bytes"),
    gathered=own_rows(VECTOR, "the two pieces of memory: header or prefix, and payload", 2),
)
POLL = Record("Poll", "A struct pollfd.", entry=word("descriptor, events << 32, found << 48"))

LINKS = Record(
    "Links",
    "The links of one leader to all other leaders, over sockets.",
    transfer=word("address of the kernel that moves messages"),
    advance=word("address of the kernel that ends a progress step on the ring"),
    eager_bytes=word("the largest payload that travels behind the header of an exchange"),
    # Ring and chain.
    next=pointer("Peer", "the leader to which this leader sends on the ring"),
    previous=pointer("Peer", "the leader from which this leader receives on the ring"),
    wants_out=word("1: this leader waits until the next leader's link has room"),
    wants_in=word("1: this leader waits for bytes from the previous leader"),
    awaited_out=word("the next node if bytes are still to be sent to it, else NOBODY"),
    awaited_in=word("the previous node if bytes are still to come from it, else NOBODY"),
    outgoing=part(CURSOR, "what moves to the next leader"),
    incoming=part(CURSOR, "what moves from the previous leader"),
    blocks=rows("Block", "ring.py: the block of each node"),
    staging=word("chain.py: address of STAGING_CHUNKS chunks of CHUNK_BYTES; at least eager_bytes"),
    chunk_bytes=word("chain.py: bytes of a chunk of this payload"),
    # hops.py
    bundle=word("address of the messages that are gathered, this leader's own first; 0: no hops"),
    ends=table("where each of these messages ends in the bundle"),
    gathered=word("how many messages are here; outside the verb, as many as nodes"),
    # Waiting.
    swept=word("number of the verb in which this leader last read all control links"),
    polls=rows("Poll", "entries for poll(2): three for each node, and two more"),
    lone_poll=part(POLL, "an entry for poll(2) to wait for one descriptor"),
    # Control messages.
    message_out=pointer("ControlMessage", "the message that is sent, with its words behind it"),
    words_out=word("address of the words of that message"),
    words_in=word("address of the words of the control message that arrives"),
    msghdr=part(MSGHDR, "for sendmsg(2) and recvmsg(2)"),
    peers=own_rows(PEER, "the links to each node's leader", begins_line=True),
)


@routine
def next_node(comm):
    """Return the node to which this leader sends on the ring."""
    return (comm.nodes.own_node + 1) % comm.nodes.nodes


@routine
def node_before(comm, distance):
    """Return the node ``distance`` nodes before this one on the ring, less than once around."""
    return (comm.nodes.own_node + comm.nodes.nodes - distance) % comm.nodes.nodes


@routine
def previous_node(comm):
    """Return the node from which this leader receives on the ring."""
    return node_before(comm, 1)
