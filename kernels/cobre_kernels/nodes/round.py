"""One round of a collective over several nodes.

A collective is a sequence of rounds (:func:`in_rounds`). No rank leaves the first round before all
ranks of all nodes have entered it. The steps of a round::

    enter      a step of shared memory: all ranks of the node have entered, and they see whether
               they call the same; in the first round also who writes a shared output (outputs.py)
    prepare    leaders exchange headers, and small payloads: each learns what all nodes call
    commit     a second exchange, if data are to move by a verb that leaders cannot leave
    data       a verb of the transport (verbs.py), from and to where the data belong; the other
               ranks meanwhile copy out what the round before has brought to the other half
    hand out   a step of shared memory: the outcome, and what the staging buffer holds

``protocol.py`` has the states of a leader in a round, and why every wait ends.
"""

from typing import NamedTuple

from cobre_kernels.collective.calls import BodyStatus
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.status import DISAGREE, OK, USE_SLOTS
from cobre_kernels.collective.stop import hear
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.kernel import kernel, run
from cobre_kernels.machine.record import WORD_BYTES
from cobre_kernels.nodes.arrival import note_last_node, note_node
from cobre_kernels.nodes.failing import exchange_calls, fail_on_node
from cobre_kernels.nodes.lanes import share_blocks
from cobre_kernels.nodes.outputs import end_together, see_outputs
from cobre_kernels.nodes.protocol import (
    AGREED_BEFORE,
    ALL_COMMIT,
    FINAL_DATA,
    LEAVABLE_DATA,
    NO_DATA,
    NODE_IS_IN,
    happen,
)
from cobre_kernels.nodes.records import DIFFERS, LEADER_HEADER, TAKES_WHOLE, leads, longest_block
from cobre_kernels.nodes.verbs import Exchange, Gather
from cobre_kernels.shm.region import MEETING, show_location
from cobre_kernels.shm.step import NodeStep

LEADER_HEADER_BYTES = LEADER_HEADER.size_bytes
COMMIT_BYTES = WORD_BYTES


class Opening(NamedTuple):
    """How a round begins: whether it is the first, whether data follow, and its eager payload."""

    is_first: int
    moves_data: int
    payload: int  # 0: this round has no eager payloads
    payload_bytes: int


class Chunk(NamedTuple):
    """A chunk of a payload, which one round moves; then the ranks of a node find it in ``buffer``.

    ``has_blocks`` is 1 if each node brings a block of the chunk, and leaders know where each block
    lies in the buffer. Small blocks travel eagerly.
    """

    begin: int
    length: int
    buffer: int
    has_blocks: int


@routine
def agree(comm):
    """Go through the only round of a collective that moves no data."""
    return hand_out(comm, run(comm.nodes.enter_round_kernel, comm, Opening(True, False, 0, 0)))


@routine
def in_rounds(comm, call, size_bytes, put, move, take):
    """Move a payload to all ranks, chunk by chunk, each chunk in a round.

    ``put(comm, call, begin)`` brings this rank's part of the chunk at ``begin`` to the place where
    leaders find it, and returns the :class:`Chunk`. Leaders move the chunk between nodes by
    ``move(comm, call, chunk)``, unless the chunk travels eagerly. A rank that writes its output
    copies the chunk to the output by ``take(comm, call, chunk)``, while leaders move the next
    chunk. If leaders can move the whole payload from output to output, they move it in the first
    round, and no rank takes anything.
    """
    nodes, begin, before = comm.nodes, 0, Chunk(0, 0, 0, 0)
    while True:
        chunk = put(comm, call, begin)
        outcome, is_here = enter_round(comm, chunk, begin == 0)
        if nodes.is_whole != 0:
            chunk = Chunk(0, nodes.output_bytes, nodes.output, 0)
        if outcome == OK and leads(comm) and not is_here:
            outcome = move(comm, call, chunk)
        if outcome == OK and nodes.writes != 0 and begin > 0:
            take(comm, call, before)
        outcome = hand_out(comm, outcome)
        before, begin = chunk, begin + chunk.length
        if outcome != OK or begin >= size_bytes or nodes.is_whole != 0:
            break
    if outcome == OK and nodes.writes != 0 and nodes.is_whole == 0:
        take(comm, call, before)
    return end_together(comm, outcome, MEETING)


@routine
def enter_round(comm, chunk, is_first):
    """Enter a round; return its outcome so far, and whether the chunk has travelled eagerly.

    If the outcome is OK, the caller lets leaders move a chunk that has not travelled yet. In any
    case the caller then ends the round by :func:`hand_out`.
    """
    nodes = comm.nodes
    payload, payload_bytes = 0, 0
    if leads(comm) and chunk.has_blocks != 0 and _are_eager(nodes, is_first):
        own = nodes.own_node
        payload, payload_bytes = chunk.buffer + nodes.block_at[own], nodes.block_bytes[own]
        for node in range(nodes.nodes):
            nodes.landing[node] = chunk.buffer + nodes.block_at[node]
            nodes.recv_bytes[node] = nodes.block_bytes[node]
    opening = Opening(is_first, payload == 0, payload, payload_bytes)
    return run(nodes.enter_round_kernel, comm, opening), payload != 0


@routine
def hand_out(comm, outcome):
    """End the round: every rank of the node gets its leader's outcome, and its data."""
    return run(comm.nodes.hand_out_kernel, comm, BodyStatus(outcome))


@routine
def gather_round(comm, call, buffer):
    """Go through one round in which leaders gather blocks of a buffer."""
    chunk = Chunk(0, 0, buffer, 1)
    outcome, is_here = enter_round(comm, chunk, True)
    if outcome == OK and leads(comm) and not is_here:
        outcome = gather(comm, call, chunk)
    return hand_out(comm, outcome)


@routine
def gather(comm, call, chunk):
    """As a leader, gather this lane's share of the block of each node."""
    share_blocks(comm.nodes)
    return run(comm.nodes.allgatherv, comm, Gather(chunk.buffer, 1))


@routine
def _are_eager(nodes, is_first):
    """Tell whether all blocks travel behind headers: if there are headers, and blocks are small."""
    has_headers = is_first or nodes.can_leave == 0
    return nodes.lanes_now == 1 and has_headers and longest_block(nodes) <= nodes.eager_bytes


@kernel(COMM, Opening)
def enter_round_kernel(comm, call):
    """Wait for the ranks of this node; leaders then agree with each other."""
    outcome = meet_node(comm)
    if outcome in (OK, DISAGREE):  # the header says which of the two it is
        happen(comm, NODE_IS_IN)
        if leads(comm):
            outcome = _agree(comm, call, outcome)
    else:
        fail_on_node(comm, outcome)
    return outcome


@routine
def meet_node(comm):
    """Go through a step of shared memory, in which the ranks of the node compare their calls."""
    nodes = comm.nodes
    if nodes.output_mark != 0:
        show_location(comm)
    signature = comm.signature | nodes.output_mark
    outcome = run(nodes.step_kernel, comm, NodeStep(signature, comm.compared, comm.count, 0))
    if nodes.output_mark != 0 or outcome == USE_SLOTS:
        outcome = see_outputs(comm, outcome)
    return outcome


@routine
def _agree(comm, call, outcome):
    """Exchange headers with the other leaders; commit if a verb follows that cannot be left."""
    nodes, header = comm.nodes, comm.nodes.header
    if nodes.can_leave != 0 and call.is_first == 0:
        happen(comm, AGREED_BEFORE)
        return outcome
    takes_whole = call.payload == 0 and call.moves_data != 0 and nodes.takes_whole != 0
    header.marks = (DIFFERS if outcome == DISAGREE else 0) | (TAKES_WHOLE if takes_whole else 0)
    header.signature = comm.signature
    header.compared = comm.compared
    note_node(comm)
    if call.payload == 0:
        for node in range(nodes.nodes):
            nodes.recv_bytes[node] = 0
    outcome = run(
        nodes.exchange, comm, Exchange(LEADER_HEADER_BYTES, call.payload, call.payload_bytes)
    )
    if outcome != OK:
        return outcome
    if call.is_first != 0:
        note_last_node(comm)
    same = _headers_are_equal(comm)
    nodes.is_whole = same and _all_take_whole(nodes)
    # After a leader has left a verb, the verb must not touch an output. So leaders can leave a verb
    # from output to output only if the transport itself moves the bytes, and sees them move.
    can_leave = nodes.can_leave != 0 and (nodes.is_whole == 0 or nodes.sees_bytes != 0)
    if call.moves_data == 0 and same:
        happen(comm, NO_DATA)
    elif can_leave:
        happen(comm, LEAVABLE_DATA)
    else:
        happen(comm, FINAL_DATA)
        outcome = run(nodes.exchange, comm, Exchange(COMMIT_BYTES, 0, 0))
        if outcome != OK:
            return outcome
        happen(comm, ALL_COMMIT)
    return OK if same else exchange_calls(comm)


@routine
def _headers_are_equal(comm):
    for node in range(comm.nodes.nodes):
        header = comm.nodes.headers[node]
        if header.marks & DIFFERS != 0:
            return False
        difference = hear(comm, header.signature ^ comm.signature)
        if difference != 0 or header.compared != comm.compared:
            return False
    return True


@routine
def _all_take_whole(nodes):
    common = TAKES_WHOLE
    for node in range(nodes.nodes):
        common &= nodes.headers[node].marks
    return common != 0
