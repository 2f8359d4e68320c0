"""One round of a collective over several nodes.

A collective is a sequence of rounds. No rank leaves the first one before all ranks of all nodes
have entered it. The steps of a round::

    enter      a step of shared memory: the ranks of the node are here and call the same, and in
               the first round they see who writes an output that several have (outputs.py)
    prepare    leaders exchange headers, and small payloads: each learns what all nodes call
    commit     a second exchange, if data is to move and cannot be left
    data       a verb of the transport (verbs.py), from and to where the data belongs; the other
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
from cobre_kernels.nodes.outputs import see_outputs
from cobre_kernels.nodes.protocol import (
    AGREED_BEFORE,
    ALL_COMMIT,
    FINAL_DATA,
    LEAVABLE_DATA,
    NO_DATA,
    NODE_IS_IN,
    happen,
)
from cobre_kernels.nodes.records import DIFFERS, LEADER_HEADER, TAKES_WHOLE, leads
from cobre_kernels.nodes.verbs import Exchange, Gather
from cobre_kernels.shm.region import show_location
from cobre_kernels.shm.step import NodeStep, next_generation

LEADER_HEADER_BYTES = LEADER_HEADER.size_bytes
COMMIT_BYTES = WORD_BYTES


class Opening(NamedTuple):
    """How a round begins: whether it is the first, whether data follow, and its eager payload."""

    is_first: int
    moves_data: int
    payload: int  # 0: this round has no eager payloads
    payload_bytes: int


@routine
def agree(comm):
    """Go through a round without data, which is all of its collective."""
    return hand_out(comm, run(comm.nodes.enter_round_kernel, comm, Opening(True, False, 0, 0)))


@routine
def enter_round(comm, is_first):
    """Enter a round; on a leader, return what the leaders agreed.

    If that is OK, a leader moves the data. In any case :func:`hand_out` follows.
    """
    return run(comm.nodes.enter_round_kernel, comm, Opening(is_first, True, 0, 0))


@routine
def hand_out(comm, outcome):
    """End the round: every rank of the node gets its leader's outcome, and its data."""
    return run(comm.nodes.hand_out_kernel, comm, BodyStatus(outcome))


@routine
def gather_round(comm, buffer, is_first):
    """Go through a round in which leaders gather parts of a buffer: eagerly, if they are small.

    Before this, the leaders have set the block of each node in the buffer. A follower reads the
    buffer of its leader.
    """
    outcome, moves_data = begin_gather(comm, buffer, is_first)
    return hand_out(comm, move_parts(comm, buffer, outcome, moves_data))


@routine
def begin_gather(comm, buffer, is_first):
    """Enter such a round; return what the leaders agreed, and whether data are still to move."""
    nodes = comm.nodes
    payload, payload_bytes = 0, 0
    if leads(comm) and _are_eager(nodes, is_first):
        own = nodes.own_node
        payload, payload_bytes = buffer + nodes.block_at[own], nodes.block_bytes[own]
        for node in range(nodes.nodes):
            nodes.landing[node] = buffer + nodes.block_at[node]
            nodes.recv_bytes[node] = nodes.block_bytes[node]
    opening = Opening(is_first, payload == 0, payload, payload_bytes)
    return run(nodes.enter_round_kernel, comm, opening), payload == 0


@routine
def move_parts(comm, buffer, outcome, moves_data):
    """As a leader, gather the parts that have not been eager; return what is to be handed out."""
    if outcome == OK and leads(comm) and moves_data:
        share_blocks(comm.nodes)
        return run(comm.nodes.allgatherv, comm, Gather(buffer, 1))
    return outcome


@routine
def _are_eager(nodes, is_first):
    """Tell whether all parts are small enough to travel with the headers, if there are headers."""
    if nodes.lanes_now > 1:
        return False
    largest = 0
    for node in range(nodes.nodes):
        largest = max(largest, nodes.block_bytes[node])
    return largest <= nodes.eager_bytes and (is_first or nodes.can_leave == 0)


@kernel(COMM, Opening)
def enter_round_kernel(comm, call):
    """Wait for the ranks of this node; leaders then agree with each other."""
    outcome = meet_node(comm)
    if outcome in (OK, DISAGREE):  # the headers tell the other leaders of either
        happen(comm, NODE_IS_IN)
        if leads(comm):
            outcome = _agree(comm, call, outcome)
    else:
        fail_on_node(comm, outcome)
    return outcome


@routine
def meet_node(comm):
    """Go through a step of shared memory: all ranks of the node are here, and call the same."""
    nodes = comm.nodes
    if nodes.output_mark != 0:
        show_location(comm, next_generation(comm))
    signature = comm.signature | nodes.output_mark
    outcome = run(nodes.step_kernel, comm, NodeStep(signature, comm.compared, comm.count, 0))
    if nodes.output_mark != 0 or outcome == USE_SLOTS:
        outcome = see_outputs(comm, outcome)
    return outcome


@routine
def _agree(comm, call, outcome):
    """Exchange headers with the other leaders; commit where a wait for data could not end."""
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
    # A verb that is left must not touch an output any more. So it can be left if it moves bytes
    # itself: then it sees them.
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
