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
NO_LINK = -1  # in place of a descriptor

STAGING_CHUNKS = 4  # chunks of the chain in private memory; together they fit a cache
CHUNK_BYTES = 256 * 1024  # the most bytes of such a chunk; a multiple of every element's size

PEER = Record(
    "Peer",
    "The links to the leader of another node.",
    line_bytes=LINE_BYTES,
    control_fd=word("descriptor of the control link; NO_LINK: none, or it has ended"),
    data_fd=word("descriptor of the data link; NO_LINK: this is the leader itself"),
    process_fd=word("readable once the leader's process has ended; NO_LINK: cannot be known"),
    # The message to the leader.
    header=part(FRAME_HEADER, "begins the message"),
    header_left=word("bytes of the header still to send"),
    payload=word("address of the payload still to send"),
    payload_left=word("bytes of it"),
    # The message from the leader.
    inbox=part(FRAME_HEADER, "begins the message"),
    landing=word("address where its payload goes"),
    filled=word("bytes of header and payload that are here"),
    wanted=word("bytes that there will be"),
    first_word=word("the first word of the header if the leaders agree"),
    surplus=word("address of bytes that came behind it, if the leaders disagree"),
    surplus_bytes=word("how many of these are still to be read"),
    # The control message that arrives.
    control=part(CONTROL_MESSAGE, "the bytes of it that are here"),
    control_filled=word("how many bytes of it are here"),
)

CURSOR = Record(
    "Cursor",
    "How far one direction of the ring, or of the chain, has come.",
    prefix=memory(8, "first bytes of the frame under way"),
    prefix_left=word("bytes of the prefix still to move"),
    frame_left=word("bytes of payload still to move of this frame"),
    # ring.py
    block=word("node whose block moves"),
    offset=word("bytes of the block that have moved"),
    done=word("bytes of payload that have moved in all"),
    total=word("bytes of payload that will have moved in the end"),
    # chain.py
    next_byte=word("address of the next byte of the frame"),
    is_result=word("1: the frame is a result; 0: a partial fold"),
    partials=word("chunks of partial folds that have moved"),
    partials_total=word("and will have moved in the end"),
    results=word("chunks of results that have moved; incoming: that are in place"),
    results_total=word("and will have moved in the end"),
)

BLOCK = Record(
    "Block",
    "The bytes that one node contributes to a payload on the ring.",
    begin=word("its address"),
    size_bytes=word("its length"),
)

MSGHDR = Record(
    "Msghdr",
    "A struct msghdr and its two pieces of memory; its other words are 0.",
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
    "The links of one leader to all others, over sockets.",
    transfer=word("kernel that moves messages, by address"),
    advance=word("kernel that ends a progress step on the ring, by address"),
    eager_bytes=word("largest payload behind the header of an exchange"),
    # Ring and chain.
    next=pointer("Peer", "the leader that this one sends to on the ring"),
    previous=pointer("Peer", "the leader that it receives from"),
    wants_out=word("1: waits for room towards the next leader"),
    wants_in=word("1: waits for bytes from the previous leader"),
    awaited_out=word("the next node if bytes are still to be sent to it, else NOBODY"),
    awaited_in=word("the previous node if bytes are still to come from it, else NOBODY"),
    outgoing=part(CURSOR, "to the next leader"),
    incoming=part(CURSOR, "from the previous leader"),
    blocks=rows("Block", "ring.py: one for each node"),
    staging=word("chain.py: address of STAGING_CHUNKS chunks of CHUNK_BYTES; eager_bytes at least"),
    chunk_bytes=word("chain.py: bytes of a chunk of this payload"),
    # hops.py
    bundle=word("address of the messages that are gathered, this leader's own first; 0: no hops"),
    ends=table("where each of them ends in the bundle"),
    gathered=word("how many messages are here; outside the verb, as many as nodes"),
    # Waiting.
    swept=word("the verb in which it last read all control links"),
    polls=rows("Poll", "entries for poll(2): 3 for each node and 2 more"),
    lone_poll=part(POLL, "an entry to wait for one descriptor"),
    # Control messages.
    message_out=pointer("ControlMessage", "the one that is sent, with its words behind it"),
    words_out=word("address of these"),
    words_in=word("address of the words of the one that comes"),
    msghdr=part(MSGHDR, "for sendmsg(2) and recvmsg(2)"),
    peers=own_rows(PEER, "one for each node", begins_line=True),
)


@routine
def next_node(comm):
    """Return the node that this leader sends to on the ring."""
    return (comm.nodes.own_node + 1) % comm.nodes.nodes


@routine
def node_before(comm, distance):
    """Return the node that is so many nodes before this one on the ring; fewer than all nodes."""
    return (comm.nodes.own_node + comm.nodes.nodes - distance) % comm.nodes.nodes


@routine
def previous_node(comm):
    """Return the node that this leader receives from on the ring."""
    return (comm.nodes.own_node + comm.nodes.nodes - 1) % comm.nodes.nodes
