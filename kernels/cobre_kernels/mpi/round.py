"""One round of a collective over several nodes, and the protocol between leaders.

Theory of operation
-------------------
A collective is a sequence of rounds. Each agrees anew, which costs little beside its data: a rank
that is lost in between is then missed in a wait that can end, not in a call of MPI that cannot.
No rank leaves a round before all ranks of all nodes have entered it. The steps of a round::

    enter      a step of shared memory: the ranks of the node are here and call the same
    prepare    leaders exchange headers: each learns what all nodes call
    commit     a second exchange, if data is to move
    data       blocking collectives of MPI, from and to where the data belongs
    hand out   a step of shared memory: the outcome, and what the staging buffer holds

Messages between leaders::

    header           what the node calls, and an eager payload; MPI_Iallgather of 64 bytes
    commit           MPI_Iallgather of 8 bytes, whose content says nothing
    failure report   why each rank takes no further part, and the exchanges its sender completed
    goodbye          a failure report that says LEFT of its sender
    liveness query   asks whether the receiver waits in an exchange too
    liveness answer  says so

A leader is OUTSIDE of a round; or has ENTERED it, and waits in the prepare exchange; or is
PREPARED: it has all headers, and waits in the commit exchange; or is COMMITTED: it moves the data,
if there are any, and hands out.
The sender of a *fresh* report had completed fewer exchanges than the receiver has begun.

=========  =========  ============================  =================================  =========
row        state      event                         what the leader does               next
=========  =========  ============================  =================================  =========
ENTER      OUTSIDE    all ranks of the node are in  begin the prepare exchange         ENTERED
REFUSE     OUTSIDE    ENTER, after any report       name the lost, report, hand out    OUTSIDE
AGREE      ENTERED    headers equal, no data moves  the outcome is OK                  COMMITTED
PREPARE    ENTERED    headers equal, data moves     begin the commit exchange          PREPARED
DIFFER     ENTERED    headers differ                begin the commit exchange          PREPARED
INTERRUPT  ENTERED    a signal handler raised       report GAVE_UP                     OUTSIDE
FORK       ENTERED    a signal handler forked       the child leaves, and says nothing OUTSIDE
QUERY      ENTERED    the timeout is over           query all leaders                  ENTERED
HEARD      ENTERED    liveness answer               note that the node is here         ENTERED
LATE       ENTERED    ANSWER_NS since QUERY         name the silent, report, hand out  OUTSIDE
ANSWER     waiting    liveness query                answer                             the same
RELEASE    waiting    fresh report                  name the lost, report, hand out    OUTSIDE
KEEP       waiting    another report                keep it for REFUSE                 the same
COMMIT     PREPARED   the exchange completes        move data, or exchange calls       COMMITTED
HAND_OUT   COMMITTED  MPI returns, or no data       hand out the outcome               OUTSIDE
STRAY      COMMITTED  a follower does not fetch it  name it, report, hand that out     OUTSIDE
FAIL       any        MPI returns an error          report GAVE_UP, hand out           OUTSIDE
=========  =========  ============================  =================================  =========

Time limits: ``timeout_ns`` for entering; for ENTERED ``timeout_ns``, then ANSWER_NS; none for
PREPARED, which hears no signal either; ``timeout_ns`` for the followers that are to fetch an
outcome. A follower waits for its leader without a limit: the leader has one, and a follower sees
that its leader dies or gives up. Data takes as long as MPI takes.

No leader enters a blocking call of MPI alone. *Always notify*: each row from ENTERED to OUTSIDE
sends a report, and only RELEASE leads from PREPARED to OUTSIDE. If one leader is COMMITTED to move
data, all have begun the commit exchange. Then none gave up in the prepare exchange, no report is
fresh, and all become COMMITTED. If one leader gave up in the prepare exchange, the commit
exchange completes nowhere, and its report releases all that are PREPARED. A sender whose report is
not fresh has completed the exchange: so will the receiver, even if the sender has ended meanwhile.
"""

from typing import NamedTuple

from cobre_kernels.collective.calls import STOP, Barrier, Outcome
from cobre_kernels.collective.comm import ARRIVED, COMM, FAILURE, GAVE_UP
from cobre_kernels.collective.status import (
    DISAGREE,
    INTERRUPTED,
    IS_FORKED,
    LOST_PEER,
    MPI_FAILED,
    OK,
    TIMED_OUT,
)
from cobre_kernels.collective.stop import hear
from cobre_kernels.machine.atomics import load_relaxed, store_relaxed
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel, run
from cobre_kernels.machine.record import WORD_BYTES
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import calls
from cobre_kernels.mpi.arrival import note_last_node, note_node, show_last, take_last
from cobre_kernels.mpi.exchange import exchange, outcome_of_reports
from cobre_kernels.mpi.messages import report_failure
from cobre_kernels.mpi.records import COMMITTED, ENTERED, HEADER, OUTSIDE, PREPARED, is_leader
from cobre_kernels.shm.step import record_calls

HEADER_BYTES = HEADER.size_bytes
COMMIT_BYTES = WORD_BYTES
FAILURE_BYTES = FAILURE.size_bytes


class Opening(NamedTuple):
    """How a round begins: with an eager payload, or before data moves, or with neither."""

    payload: int
    payload_bytes: int
    moves_data: int


@routine
def enter_round(comm, moves_data):
    """Enter a round; on a leader, return what the leaders agreed.

    If that is OK, a leader moves the data, if it said so. In any case :func:`hand_out` follows.
    """
    return run(comm.mpi.enter_round_kernel, comm, Opening(0, 0, moves_data))


@routine
def enter_eager_round(comm, payload, size_bytes):
    """Enter a round; a few bytes of each leader travel with its header."""
    return run(comm.mpi.enter_round_kernel, comm, Opening(payload, size_bytes, False))


@routine
def hand_out(comm, outcome):
    """End the round: every rank of the node gets its leader's outcome, and its data."""
    return run(comm.mpi.hand_out_kernel, comm, Outcome(outcome))


@kernel(COMM, Opening)
def enter_round_kernel(comm, call):
    """Wait for the ranks of this node; leaders then agree with each other."""
    mpi = comm.mpi
    mpi.phase = OUTSIDE
    outcome = meet_node(comm)
    if outcome in (OK, DISAGREE):  # the leaders will hear of either
        mpi.phase = ENTERED
        if is_leader(comm):
            outcome = _agree(comm, call, outcome)
    else:
        fail_on_node(comm, outcome)
    return outcome


@routine
def meet_node(comm):
    """Go through a step of shared memory: all ranks of the node are here, and call the same."""
    node = comm.mpi.node
    node.signature = comm.signature
    node.length = comm.length
    node.detail = comm.detail
    node.arrived = 0
    node.first_step = node.generation + 1 if comm.first_step != 0 else 0
    outcome = run(node.barrier_body, node, Barrier(comm.signature, comm.length))
    if node.arrived != 0:
        comm.arrived = node.arrived
        comm.last = node.names[node.last]
    hear(comm, node.signature ^ comm.signature)
    return outcome


@routine
def _agree(comm, call, outcome):
    """Exchange headers with the other leaders; all of them commit if data is to move."""
    mpi, header = comm.mpi, comm.mpi.header
    header.differs = outcome == DISAGREE
    header.signature = comm.signature
    header.length = comm.length
    note_node(comm)
    if call.payload_bytes > 0:
        move(header.payload, call.payload, call.payload_bytes)
    if mpi.reports > 0:  # row REFUSE
        outcome = outcome_of_reports(comm, False)
    else:
        outcome = exchange(comm, HEADER_BYTES)
        if outcome == OK and comm.first_step != 0:
            note_last_node(comm)
    same = outcome == OK and _headers_are_equal(comm)
    if outcome == OK and (call.moves_data != 0 or not same):  # rows PREPARE and DIFFER
        mpi.phase = PREPARED
        outcome = exchange(comm, COMMIT_BYTES)
    if outcome == OK:
        mpi.phase = COMMITTED
        return OK if same else _exchange_calls(comm)
    # Always notify: a leader that is PREPARED relies on it.
    is_own = outcome in (INTERRUPTED, MPI_FAILED)
    report_failure(comm, GAVE_UP if is_own else ARRIVED)
    return outcome


@routine
def _headers_are_equal(comm):
    for node in range(comm.mpi.nodes):
        header = comm.mpi.headers[node]
        if header.differs != 0:
            return False
        difference = hear(comm, header.signature ^ comm.signature)
        if difference != 0 or header.length != comm.length:
            return False
    return True


@routine
def _exchange_calls(comm):
    """Learn what every rank called; all leaders are here, for all have seen the same headers."""
    mpi, node = comm.mpi, comm.mpi.node
    record_calls(node)
    first = mpi.staging.failures[mpi.node_starts[mpi.own_node]]
    move(first.address, node.failures[0].address, node.size * FAILURE_BYTES)
    calls.put_given_by_node(comm, FAILURE_BYTES)
    outcome = calls.allgatherv(comm, mpi.staging.failures[0].address)
    if outcome == OK:
        _copy_failures(comm, False)
        return DISAGREE
    return outcome


@routine
def _copy_failures(comm, to_staging):
    """Copy the failure records to the staging buffer, where they lie in node order, or from it."""
    for rank in range(comm.size):
        own = comm.failures[rank].address
        staged = comm.mpi.staging.failures[comm.mpi.node_index[rank]].address
        if to_staging:
            move(staged, own, FAILURE_BYTES)
        else:
            move(own, staged, FAILURE_BYTES)


@kernel(COMM, Outcome)
def hand_out_kernel(comm, call):
    """Give the ranks of this node the outcome of the leaders, by a step of shared memory."""
    mpi, node, staging = comm.mpi, comm.mpi.node, comm.mpi.staging
    if mpi.phase == OUTSIDE or call.status in (INTERRUPTED, IS_FORKED):
        return call.status  # of this rank alone; the others see that it has gone
    mpi.phase = OUTSIDE
    comm.first_step = 0
    if is_leader(comm):
        _show_outcome(comm, call.status)
    else:
        node.timeout_ns = 0
    node.signature = comm.signature & STOP  # which the leader may have heard of
    node.length = node.detail = 0
    step = run(node.barrier_body, node, Barrier(0, 0))
    hear(comm, node.signature ^ comm.signature)
    node.timeout_ns = comm.timeout_ns
    # A leader that gave up has shown whom it missed (row STRAY), unless it was interrupted.
    is_told = step == OK or (step == LOST_PEER and load_relaxed(staging.status) != OK)
    if is_told and not is_leader(comm):
        return _take_outcome(comm)
    if step != OK:
        fail_on_node(comm, step)
        if step == TIMED_OUT:  # row STRAY
            _show_outcome(comm, step)
        return step
    return call.status


@routine
def _show_outcome(comm, status):
    """Write the outcome where the ranks of this node read it, once they see this leader's flag."""
    staging = comm.mpi.staging
    show_last(comm)
    if status != OK:
        _copy_failures(comm, True)
    store_relaxed(staging.status, status)
    store_relaxed(staging.mpi_error, comm.mpi_error)
    store_relaxed(staging.waited_ns, comm.waited_ns)


@routine
def _take_outcome(comm):
    staging = comm.mpi.staging
    status = load_relaxed(staging.status)
    take_last(comm)
    if status != OK:
        _copy_failures(comm, False)
        comm.mpi_error = load_relaxed(staging.mpi_error)
        comm.waited_ns = load_relaxed(staging.waited_ns)
    return status


@routine
def fail_on_node(comm, outcome):
    """Keep how a step of shared memory failed, by the ranks' own numbers, and report it.

    Ranks of other nodes take no part in it: nothing is kept of them.
    """
    mpi, node = comm.mpi, comm.mpi.node
    record_calls(node)
    for rank in range(comm.size):
        comm.failures[rank].signature = 0
    first = mpi.node_starts[mpi.own_node]
    for index in range(node.size):
        own = comm.failures[mpi.node_order[first + index]].address
        move(own, node.failures[index].address, FAILURE_BYTES)
    comm.waited_ns = node.waited_ns
    move(comm.pending_exception, node.pending_exception, 3 * WORD_BYTES)
    is_own = outcome in (INTERRUPTED, DISAGREE)
    report_failure(comm, GAVE_UP if is_own else ARRIVED)


KERNELS = (enter_round_kernel, hand_out_kernel)
