"""Control messages between leaders: failure reports, goodbyes, liveness queries and answers.

``round.py`` says what each of them does to its receiver. Messages are read while a leader waits, so
a leader that computes neither answers nor hears.
"""

from cobre_kernels.collective.calls import Outcome
from cobre_kernels.collective.comm import ARRIVED, COMM, DIED, GAVE_UP, LEFT
from cobre_kernels.collective.guard import is_forked
from cobre_kernels.collective.status import MPI_FAILED, OK, UNSEEN
from cobre_kernels.machine import libc
from cobre_kernels.machine.kernel import kernel, run
from cobre_kernels.machine.record import WORD_BYTES
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import calls
from cobre_kernels.mpi.records import MESSAGE, is_leader
from cobre_kernels.shm.control import CLOSED
from cobre_kernels.shm.step import announce

TAG = 2
REPORT, QUERY, ANSWER = 1, 2, 3
LIVENESS_BYTES = MESSAGE.offsets["completed"]
REPORT_BYTES = MESSAGE.size_bytes  # and a word for each rank
LAST_SENDS_NS = 100_000_000  # how long sends may take before they are left to themselves


@routine
def _leader_of(mpi, node):
    return mpi.node_order[mpi.node_starts[node]]


@routine
def _send(mpi, message, size_bytes, node):
    """Begin to send a message to the leader of another node; return the address of the request."""
    request = mpi.sends + WORD_BYTES * node
    calls.begin_send(mpi, message.address, size_bytes, _leader_of(mpi, node), TAG, request)
    return request


@routine
def report_failure(comm, own_reason):
    """Send a failure report, if it is for this rank to do so.

    A leader reports what happened on its node, unless it is itself at fault; then the others do. A
    child that a signal handler has forked is no rank, and reports nothing.
    """
    if is_forked(comm):
        return
    own, leader = comm.failures[comm.rank], comm.failures[_leader_of(comm.mpi, comm.mpi.own_node)]
    if own_reason != ARRIVED:
        own.reason = own_reason
    if is_leader(comm) or leader.reason != ARRIVED:
        _send_report(comm)
    if own_reason != ARRIVED:
        own.reason = ARRIVED


@routine
def _send_report(comm):
    """Tell the leaders of the other nodes the reasons in this rank's failure records."""
    mpi, report = comm.mpi, comm.mpi.report_out
    report.kind = REPORT
    report.sender = comm.rank
    report.completed = mpi.completed
    for rank in range(comm.size):
        report.reasons[rank].reason = comm.failures[rank].reason
    for node in range(mpi.nodes):
        if _is_told(comm, node):
            _send(mpi, report, REPORT_BYTES + WORD_BYTES * comm.size, node)
    _await_sends(comm)


@routine
def _is_told(comm, node):
    """Tell whether a report goes to that node.

    A leader that has ended needs none, and MPICH over UCX crashes when a message goes to it.
    """
    reason = comm.failures[_leader_of(comm.mpi, node)].reason
    return node != comm.mpi.own_node and reason != DIED and reason != LEFT


@routine
def _await_sends(comm):
    """Give small sends the moment they need; what is left is read from memory that stays."""
    mpi = comm.mpi
    until = libc.monotonic_ns() + LAST_SENDS_NS
    for node in range(mpi.nodes):
        while _is_told(comm, node):
            code = calls.test(mpi, mpi.sends + WORD_BYTES * node)
            if code != 0 or calls.flag_is_set(mpi) or libc.monotonic_ns() > until:
                break
            libc.sched_yield()


@routine
def query_leaders(comm):
    """Send a liveness query to every other leader."""
    mpi = comm.mpi
    for node in range(mpi.nodes):
        mpi.answered[node] = 0
        if node != mpi.own_node:
            _send_liveness(comm, QUERY, node)


@routine
def _send_liveness(comm, kind, node):
    """Send a query or an answer; one this short has left when the call returns."""
    mpi, message = comm.mpi, comm.mpi.query_out
    message.kind = kind
    message.sender = comm.rank
    calls.test(mpi, _send(mpi, message, LIVENESS_BYTES, node))


@routine
def read_messages(comm):
    """Take in all messages that are here."""
    mpi, message = comm.mpi, comm.mpi.message_in
    while True:
        if calls.match_message(mpi, TAG) != 0 or not calls.flag_is_set(mpi):
            return
        if calls.receive_matched(mpi, message.address, REPORT_BYTES + WORD_BYTES * comm.size) != 0:
            return
        node = mpi.node_of[message.sender]
        if message.kind == REPORT:
            _take_report(comm, message)
        elif message.kind == QUERY:  # row ANSWER
            _send_liveness(comm, ANSWER, node)
        else:  # row HEARD
            mpi.answered[node] = 1


@routine
def _take_report(comm, report):
    """Keep a report, which is final: a rank that has failed or left takes part in nothing more."""
    mpi = comm.mpi
    earlier = mpi.reported if mpi.reports > 0 else report.completed
    mpi.reported = min(earlier, report.completed)
    mpi.reporter = report.sender
    mpi.reports += 1
    for rank in range(comm.size):
        reason = report.reasons[rank].reason
        if reason != ARRIVED:
            mpi.reasons[rank] = reason


@kernel(COMM, Outcome)
def abandon_body(comm, call):
    """Tell the ranks of this node, and the other leaders if they do not know, of the failure."""
    is_told = call.status == MPI_FAILED or call.status == UNSEEN  # else the round has told it
    if is_told and is_leader(comm):
        report_failure(comm, GAVE_UP)
    return run(comm.mpi.node.abandon_body, comm.mpi.node, call)


@kernel(COMM)
def goodbye_kernel(comm):
    """Tell the ranks of this node, and the other leaders, that this rank closes.

    A follower tells no leader: its own one misses it in the next round.
    """
    announce(comm.mpi.node, CLOSED)
    if is_leader(comm):
        comm.failures[comm.rank].reason = LEFT
        _send_report(comm)
    return OK


KERNELS = (goodbye_kernel,)
