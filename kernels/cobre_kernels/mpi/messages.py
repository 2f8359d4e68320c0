"""Control messages between leaders: reports, goodbyes, exceptions, liveness queries and answers.

``nodes/round.py`` says what a leader does when such a message comes. A leader reads messages only
while it waits, so one that computes does not answer a query.
"""

from cobre_kernels.collective.calls import Outcome
from cobre_kernels.collective.comm import COMM, DIED, LEFT, PRESENT
from cobre_kernels.collective.seeing.journal import NOBODY, RAISED_ROWS, note_raised, take_raised
from cobre_kernels.collective.status import DISAGREE, OK
from cobre_kernels.machine import libc
from cobre_kernels.machine.kernel import kernel, run
from cobre_kernels.machine.record import WORD_BYTES
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import calls
from cobre_kernels.mpi.records import MESSAGE, RAISED_MESSAGE
from cobre_kernels.nodes.records import leader_of

TAG = 2
REPORT, QUERY, ANSWER, RAISED = 1, 2, 3, 4
LIVENESS_BYTES = MESSAGE.offsets["completed"]
RAISED_MESSAGE_BYTES = RAISED_MESSAGE.size_bytes
REPORT_BYTES = MESSAGE.size_bytes  # and a word for each rank
LAST_SENDS_NS = 100_000_000  # how long sends may take before they are left to themselves


@routine
def _send(comm, message, size_bytes, node):
    """Begin to send a message to the leader of another node; return the address of the request."""
    mpi, leader = comm.mpi, leader_of(comm.nodes, node)
    request = mpi.sends + WORD_BYTES * node
    calls.begin_send(mpi, message.address, size_bytes, leader, TAG, request)
    return request


@kernel(COMM, Outcome)
def report_kernel(comm, call):
    """Tell the leaders of the other nodes the reasons in this rank's failure records, once.

    MPI may still read an earlier report, and a rank that has failed has nothing to add.
    """
    mpi, nodes, report = comm.mpi, comm.nodes, comm.mpi.report_out
    if call.status == DISAGREE or report.kind == REPORT:
        return OK  # after DISAGREE, MPI has told the others what all have called
    _send_raised(comm)
    report.kind = REPORT
    report.sender = comm.rank
    report.completed = mpi.completed
    for rank in range(comm.size):
        report.reasons[rank].reason = comm.failures[rank].reason
    for node in range(nodes.nodes):
        if _is_told(comm, node):
            _send(comm, report, REPORT_BYTES + WORD_BYTES * comm.size, node)
    _await_sends(comm)
    return OK


@routine
def _send_raised(comm):
    """Send what ranks have raised; a row of the journal, once it is written, stays."""
    mpi = comm.mpi
    for row in range(RAISED_ROWS):
        message = mpi.raised_out[row]
        rank = take_raised(comm.journal, row, message.words)
        if rank != NOBODY:
            message.kind = RAISED
            message.sender = comm.rank
            message.rank = rank
            for node in range(comm.nodes.nodes):
                if _is_told(comm, node):
                    _send(comm, message, RAISED_MESSAGE_BYTES, node)


@kernel(COMM)
def goodbye_kernel(comm):
    """Tell the other leaders that this one closes."""
    comm.failures[comm.rank].reason = LEFT
    return run(comm.nodes.report, comm, Outcome(OK))


@routine
def _is_told(comm, node):
    """Tell whether a report goes to that node.

    A leader that has ended needs none, and MPICH over UCX crashes when a message goes to it.
    """
    reason = comm.failures[leader_of(comm.nodes, node)].reason
    return node != comm.nodes.own_node and reason != DIED and reason != LEFT


@routine
def _await_sends(comm):
    """Wait a little for small sends; MPI reads those that take longer from memory that stays."""
    mpi = comm.mpi
    until = libc.monotonic_ns() + LAST_SENDS_NS
    for node in range(comm.nodes.nodes):
        while _is_told(comm, node):
            code = calls.test(mpi, mpi.sends + WORD_BYTES * node)
            if code != 0 or calls.flag_is_set(mpi) or libc.monotonic_ns() > until:
                break
            libc.sched_yield()


@routine
def query_leaders(comm):
    """Send a liveness query to every other leader."""
    mpi = comm.mpi
    for node in range(comm.nodes.nodes):
        mpi.answered[node] = 0
        if node != comm.nodes.own_node:
            _send_liveness(comm, mpi.query_out, node)


@routine
def _send_liveness(comm, message, node):
    """Send a query or an answer; MPI may still read it later, and its words never change."""
    calls.test(comm.mpi, _send(comm, message, LIVENESS_BYTES, node))


@routine
def read_messages(comm):
    """Receive all messages that have come, and note what they tell."""
    mpi, message = comm.mpi, comm.mpi.message_in
    while True:
        if calls.match_message(mpi, TAG) != 0 or not calls.flag_is_set(mpi):
            return
        longest = max(REPORT_BYTES + WORD_BYTES * comm.size, RAISED_MESSAGE_BYTES)
        if calls.receive_matched(mpi, message.address, longest) != 0:
            return
        node = comm.nodes.node_of[message.sender]
        if message.kind == REPORT:
            _take_report(comm, message)
        elif message.kind == QUERY:  # row ANSWER
            _send_liveness(comm, mpi.answer_out, node)
        elif message.kind == RAISED:  # its rank and words lie where a report has the next two
            note_raised(comm.journal, message.completed, message.reasons[0].address)
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
        if reason != PRESENT:
            mpi.reasons[rank] = reason
