"""The verbs allgatherv and broadcast: every block goes once around the ring of leaders.

Leader k sends its own block to leader k + 1, and then the blocks of leaders k - 1, k - 2, ... as
their bytes arrive, without waiting for the end of a block. So every link carries each block at most
once, and all links are busy at the same time. If the payload lies on one node alone (a broadcast),
the ring becomes a pipelined chain. The leaders have agreed on all lengths before.

If there are several lanes, short blocks go straight to every leader (:func:`goes_straight`): the
number of bytes is the same, and every block takes one hop. With one lane, all blocks go around the
ring, because lanes are for fast cables. A slow cable, or its switch, may have no room for what all
leaders send at once, and a lost packet costs more than all hops. Blocks that go straight travel
behind headers that leaders compare. So when headers differ, the calls that leaders exchange go
around the ring instead.

Sources: the ring allgather of Chan, Heimlich, Purkayastha, van de Geijn, "Collective
communication: theory, practice, and experience", 2007, section 4.3, cut through instead of stored
and forwarded.
"""

from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import OK
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.kernel import kernel, run
from cobre_kernels.nodes.records import longest_block, set_recv, set_send
from cobre_kernels.nodes.verbs import Cast, Gather, Scatter
from cobre_kernels.nodes.waiting import end_verb
from cobre_kernels.tcp.frame import is_prefix, write_prefix
from cobre_kernels.tcp.links import next_node, previous_node
from cobre_kernels.tcp.progress.neighbours import advance, receive_prefix, send_frame
from cobre_kernels.tcp.progress.sockets import (
    GARBLED,
    MORE,
    MOVED,
    NO_MORE,
    receive_data,
    without_bytes,
)
from cobre_kernels.tcp.progress.waiting import begin_links
from cobre_kernels.tcp.tags import BLOCK

FRAME_BYTES = 2**30  # the most payload of a frame; a longer payload goes in several frames
STRAIGHT_BYTES = 64 * 1024  # of a block; so sixteen nodes send a megabyte to a node at once
SYSCALL_BYTES = 512 * 1024  # the most that a system call moves, so that both directions take turns


@kernel(COMM, Gather)
def allgatherv_kernel(comm, call):
    """Relay the block of every node, or send the blocks straight."""
    nodes = comm.nodes
    straight = goes_straight(nodes.nodes, nodes.lanes_now, longest_block(nodes))
    if call.is_agreed != 0 and straight:
        return _send_straight(comm, call)
    for node in range(nodes.nodes):
        _set_block(comm, node, call.buffer + nodes.block_at[node], nodes.block_bytes[node])
    return _relay(comm)


@routine
def goes_straight(nodes, lanes, block_bytes):
    """Tell whether the blocks of so many nodes go straight, by the longest block of a lane."""
    return nodes > 2 and lanes > 1 and block_bytes <= STRAIGHT_BYTES


@routine
def _send_straight(comm, call):
    nodes = comm.nodes
    own_bytes, own_at = nodes.block_bytes[nodes.own_node], nodes.block_at[nodes.own_node]
    for node in range(nodes.nodes):
        set_send(nodes, node, own_bytes, own_at)
        set_recv(nodes, node, nodes.block_bytes[node], nodes.block_at[node])
    return run(nodes.alltoallv, comm, Scatter(call.buffer, call.buffer))


@kernel(COMM, Cast)
def broadcast_kernel(comm, call):
    """Relay one block, that of the root's node."""
    for node in range(comm.nodes.nodes):
        _set_block(comm, node, call.buffer, call.size_bytes if node == call.root_node else 0)
    return _relay(comm)


@routine
def _set_block(comm, node, begin, size_bytes):
    """Set where the block of a node begins, and how many bytes it has."""
    block = comm.links.blocks[node]
    block.begin = begin
    block.size_bytes = size_bytes


@routine
def _relay(comm):
    """Move the blocks that are set until every leader has them all; return a status."""
    links, blocks, own_node = comm.links, comm.links.blocks, comm.nodes.own_node
    everything = 0
    for node in range(comm.nodes.nodes):
        everything += blocks[node].size_bytes
    own_bytes = blocks[own_node].size_bytes
    _start(links.incoming, previous_node(comm), everything - own_bytes)
    _start(links.outgoing, own_node, everything - blocks[next_node(comm)].size_bytes)
    outcome, activity = begin_links(comm), MORE
    while outcome == OK and activity & MORE:
        sent = _send(comm, own_bytes + links.incoming.done)
        received = _receive(comm)
        outcome, activity = advance(comm, sent, received), sent | received
    return end_verb(comm, outcome)


@routine
def _start(cursor, block, total):
    cursor.prefix_left = 0
    cursor.frame_left = 0
    cursor.block = block
    cursor.offset = 0
    cursor.done = 0
    cursor.total = total


@routine
def _next_byte(comm, cursor):
    """Return the address of the next byte, after stepping over blocks that have moved."""
    blocks, nodes = comm.links.blocks, comm.nodes.nodes
    while cursor.offset == blocks[cursor.block].size_bytes:
        cursor.block = (cursor.block + nodes - 1) % nodes
        cursor.offset = 0
    return blocks[cursor.block].begin + cursor.offset


@routine
def _most_bytes(comm, cursor):
    """Return how many bytes one system call may move: never of two blocks or two frames."""
    of_block = comm.links.blocks[cursor.block].size_bytes - cursor.offset
    return min(of_block, cursor.frame_left, SYSCALL_BYTES)


@routine
def _count(cursor, moved):
    """Go forward by the bytes that have moved; return MOVED, with MORE if bytes are left."""
    cursor.offset += moved
    cursor.done += moved
    return MOVED | (MORE if cursor.done < cursor.total else NO_MORE)


@routine
def _send(comm, available):
    """Send what is here: ``available`` bytes, those already sent included; return how it went."""
    cursor = comm.links.outgoing
    comm.links.wants_out = 0
    left = cursor.total - cursor.done
    if left == 0:
        return NO_MORE
    if available == cursor.done:
        return MORE
    if cursor.frame_left == 0:
        write_prefix(cursor, BLOCK, min(left, FRAME_BYTES))
    payload = _next_byte(comm, cursor)
    count = min(_most_bytes(comm, cursor), available - cursor.done)
    sent = send_frame(comm, payload, count)
    return without_bytes(sent) if sent < 0 else _count(cursor, sent)


@routine
def _receive(comm):
    """Receive the bytes that have arrived; return how it went."""
    links, cursor = comm.links, comm.links.incoming
    left = cursor.total - cursor.done
    links.wants_in = 0 if left == 0 else 1
    if left == 0:
        return NO_MORE
    if cursor.frame_left == 0:
        outcome = receive_prefix(comm)
        if outcome != NO_MORE:
            return outcome
        if not is_prefix(cursor, BLOCK, min(left, FRAME_BYTES)):
            return GARBLED
        cursor.frame_left = min(left, FRAME_BYTES)
    payload = _next_byte(comm, cursor)
    got = receive_data(links.previous, payload, _most_bytes(comm, cursor))
    if got <= 0:
        return without_bytes(got)
    cursor.frame_left -= got
    return _count(cursor, got)
