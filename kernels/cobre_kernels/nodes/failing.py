"""How a round fails: on this node, between leaders, or because the calls of ranks differ.

Losses are noticed in other files: in ``waiting.py``, and at a link in ``tcp/progress/control.py``.
"""

from cobre_kernels.collective.calls import BodyStatus
from cobre_kernels.collective.comm import COMM, FAILURE, GAVE_UP, LATE, PRESENT
from cobre_kernels.collective.guard import is_forked
from cobre_kernels.collective.seeing.journal import learn_raised
from cobre_kernels.collective.status import (
    DISAGREE,
    INTERRUPTED,
    LOST_PEER,
    MPI_FAILED,
    OK,
    TIMED_OUT,
    UNSEEN,
)
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel, run
from cobre_kernels.nodes.messages import say_goodbye
from cobre_kernels.nodes.records import has_lane, leader_of, set_blocks_by_rank
from cobre_kernels.nodes.verbs import Gather
from cobre_kernels.shm.control import HAS_FAILED
from cobre_kernels.shm.step import announce, record_calls

FAILURE_BYTES = FAILURE.size_bytes


@routine
def report_failure(comm, status):
    """Send a failure report, if this rank is one that has to.

    A leader reports the failures of its node to the other leaders. A rank that leads its node in
    another lane reports these failures to the leaders of that lane. If the leader is itself at
    fault, its followers report, provided that the transport lets them reach other leaders. A child
    that a signal handler has forked is no rank, and reports nothing.
    """
    nodes, own = comm.nodes, comm.failures[comm.rank]
    tells = has_lane(comm) or comm.failures[leader_of(nodes, nodes.own_node)].reason != PRESENT
    if nodes.post == 0 or not tells or is_forked(comm):
        return
    for rank in range(comm.size):
        if comm.failures[rank].reason != PRESENT:
            learn_raised(comm, rank)
    gives_up = status in (INTERRUPTED, DISAGREE, MPI_FAILED, UNSEEN)  # only this rank has failed
    if gives_up:
        own.reason = GAVE_UP
    run(nodes.report, comm, BodyStatus(INTERRUPTED if gives_up else status))
    if gives_up:
        own.reason = PRESENT


@routine
def fail_on_node(comm, outcome):
    """Keep the calls of this node's ranks in a step that failed, and report the failure.

    Ranks of other nodes take no part in the step, so their calls are not kept.
    """
    for rank in range(comm.size):
        comm.failures[rank].signature = 0
    record_calls(comm)
    report_failure(comm, outcome)


@routine
def adopt_report(comm):
    """Adopt the failure reports that have arrived as this leader's failures; return their status.

    If the reports name this very rank as late, the failure names only the rank that has sent the
    report, because that rank no longer waits for this rank.
    """
    nodes = comm.nodes
    comm.waited_ns = comm.timeout_ns  # as if this rank had waited for the whole timeout
    status = TIMED_OUT
    for rank in range(comm.size):
        if nodes.reasons[rank] != PRESENT and nodes.reasons[rank] != LATE:
            status = LOST_PEER
    if status == TIMED_OUT and nodes.reasons[comm.rank] == LATE:
        return miss(comm, nodes.reporter)
    for rank in range(comm.size):
        comm.failures[rank].reason = nodes.reasons[rank]
    return status


@routine
def clear_failures(comm):
    """Mark every rank as PRESENT."""
    for rank in range(comm.size):
        comm.failures[rank].reason = PRESENT


@routine
def miss(comm, other):
    """Name only one other rank, which no longer waits for this rank; return LOST_PEER."""
    clear_failures(comm)
    comm.failures[other].reason = GAVE_UP
    return LOST_PEER


@routine
def exchange_calls(comm):
    """Learn the call of every rank; all leaders do this, because all have seen the same headers.

    The calls move in private memory of the leader, which exists longer than the verb: if a leader
    leaves this verb, the transport may still use the memory. The staging buffer is not used,
    because it may hold bytes that have arrived behind a short payload.
    """
    nodes, node = comm.nodes, comm.node
    record_calls(comm)
    first = nodes.node_starts[nodes.own_node]
    for rank in range(node.size):
        own = comm.failures[node.names[rank]].address
        move(nodes.calls[first + rank].address, own, FAILURE_BYTES)
    set_blocks_by_rank(nodes, FAILURE_BYTES)
    outcome = run(nodes.allgatherv, comm, Gather(nodes.calls[0].address, 0))
    if outcome == OK:
        take_failures(comm, nodes.calls[0].address)
        return DISAGREE
    return outcome


@routine
def take_failures(comm, rows):
    """Copy failure records, which are in node order, to the failure records of this rank."""
    for index in range(comm.size):
        own = comm.failures[comm.nodes.node_order[index]].address
        move(own, rows + index * FAILURE_BYTES, FAILURE_BYTES)


@kernel(COMM, BodyStatus)
def abandon_body(comm, call):
    """Tell the ranks of this node that this rank has failed.

    In most cases the round has already told other nodes of the failure. If a call was refused
    before a round began, this body reports the failure. After a disagreement a leader says goodbye,
    because its program may end while other leaders still learn of the disagreement.
    """
    if call.status == UNSEEN:
        report_failure(comm, call.status)
    elif call.status == DISAGREE and has_lane(comm):
        say_goodbye(comm)
    announce(comm, HAS_FAILED)
    return OK
