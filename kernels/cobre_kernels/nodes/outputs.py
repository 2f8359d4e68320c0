"""Outputs in regions: if ranks of a node receive into the same bytes, only one of them copies.

Suppose that on every node all ranks receive into the same bytes, and that the data to send are in
these outputs already. Then no rank copies out: leaders move the whole result from output to output,
in one verb. A leader that can move the whole result says so in its header (TAKES_WHOLE). If all
leaders can, all of them do. By this time ranks have put their first chunk into the staging buffer,
although nobody needs it. If a leader is alone on its node, it can move the whole result with an
output in any memory.

As on one node (``shm/region.py``), a rank that finds its output in a region shows the location.
Over several nodes the rank shows it in the step in which its node enters the first round. If
several ranks show the same location, only one of them writes there. If outputs may have bytes in
common, a last step of the node ends the collective, so that no rank returns while another rank
writes. Other nodes take no part in this step, because a region is memory of one node.
"""

from cobre_kernels.collective.calls import BARRIER, FENCE, Barrier
from cobre_kernels.collective.regions import NO_REGION, NOWHERE, may_be_shared, note_location
from cobre_kernels.collective.status import OK, USE_SLOTS
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.kernel import run
from cobre_kernels.nodes.records import leads, node_rank_of
from cobre_kernels.shm.control import IN_REGION
from cobre_kernels.shm.region import PRIVATE, compare_outputs, has_same_output

NO_ROOT = -1
LONG_BYTES = 2**20  # of an output: to copy this much takes longer than to wake another rank


@routine
def note_output(comm, output, root):
    """Note where this rank will write, before the first round of a collective.

    If the root is among the ranks with the same output, the root writes. Otherwise the last of
    these ranks writes, so that a leader can move the next chunk while a follower copies. If ranks
    send from their outputs, leaders may move the whole result in one verb.
    """
    nodes = comm.nodes
    nodes.output, nodes.output_bytes = output.address, output.size_bytes
    nodes.outputs, nodes.writes = PRIVATE, True
    is_in_place = output.send != NOWHERE and output.send == output.address
    nodes.takes_whole = is_in_place and comm.node.size == 1
    nodes.is_whole = 0
    is_here = root != NO_ROOT and nodes.node_of[root] == nodes.own_node
    nodes.first_writer = node_rank_of(nodes, root) if is_here else comm.node.size - 1
    has_peers = output.size_bytes > 0 and comm.node.size > 1
    if has_peers and may_be_shared(comm, output.address, output.size_bytes):
        nodes.output_mark = IN_REGION
        note_location(comm, output)


@routine
def see_outputs(comm, outcome):
    """Choose the ranks that write, by what ranks show in the present step; return its outcome.

    If the outcome is USE_SLOTS, because only some ranks show IN_REGION, it becomes OK.
    """
    nodes, node = comm.nodes, comm.node
    is_shown = nodes.output_mark != 0
    nodes.output_mark = 0
    if outcome not in (OK, USE_SLOTS):
        return outcome
    nodes.outputs = compare_outputs(comm, nodes.output_bytes)
    if is_shown and comm.location.region != NO_REGION:
        nodes.writes = _writer(comm) == node.rank
        nodes.takes_whole = leads(comm) and _are_in_place(comm)
    if nodes.writes == 0 and nodes.output_bytes >= LONG_BYTES:
        comm.wait.naps = 1  # or this rank would yield the core all the time while another copies
    return OK


@routine
def _writer(comm):
    """Return which rank of this node writes, of those with the same output as this rank."""
    rank = comm.nodes.first_writer
    while not has_same_output(comm, rank):
        rank = (rank - 1) % comm.node.size
    return rank


@routine
def _are_in_place(comm):
    """Tell whether all ranks of this node have the same output, and send from that output."""
    for rank in range(comm.node.size):
        if not has_same_output(comm, rank) or comm.node.shown_location.send_region == NO_REGION:
            return False
    return True


@routine
def end_together(comm, outcome, least):
    """End a collective; ranks return together if ``nodes.outputs`` is at least ``least``.

    If leaders have moved the whole result, the ranks of a node have already returned together.
    """
    nodes = comm.nodes
    if outcome == OK and nodes.is_whole == 0 and nodes.outputs >= least:
        outcome = run(comm.collectives[BARRIER].body, comm, Barrier(FENCE, 0))
    comm.wait.naps = 0
    nodes.lanes_now = 1
    return outcome
