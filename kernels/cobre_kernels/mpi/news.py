"""What leaders tell each other apart from collectives: failures, leaves, and who is waiting.

A rank that cannot go on sends a *notice* to the leaders of all other nodes: one word for each rank,
why it takes no further part. A leader whose wait is overdue asks the other leaders whether they
are in this step; those that are answer, the others are the missing ones. Messages are read while a
leader waits (wait.py), so a leader that computes neither answers nor hears.

A notice is final: who has failed or left takes part in nothing any more. It says how many exchanges
its sender had completed: who is still in one of those will complete it too, for all have begun it.
"""

from cobre_kernels import layout, libc
from cobre_kernels.machine.atomics import peek, poke
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import calls, table
from cobre_kernels.mpi.table import leads, table_of

TAG = 2
NOTICE, QUESTION, ANSWER = 1, 2, 3

# A message: what it is, the sender's rank, then for a notice how many exchanges it had completed,
# and a reason for each rank.
SORT = 0
SENDER = 8
NOTICE_COMPLETED = 16
NOTICE_REASONS = 24
SMALL_BYTES = 16
LAST_SENDS_NS = 100_000_000  # how long sends may take before they are left to themselves


def notice_bytes(size):
    """Bytes of a notice in a communicator of ``size`` ranks."""
    return NOTICE_REASONS + 8 * size


@routine
def _leader_of(mpi, node):
    return peek(peek(mpi + table.ORDER) + 8 * peek(peek(mpi + table.STARTS) + 8 * node))


@routine
def send_notice(state):
    """Tell the leaders of the other nodes what this rank has in its records."""
    mpi = table_of(state)
    notice = peek(mpi + table.NEWS_OUT)
    size = peek(state + layout.COMM_SIZE)
    poke(notice + SORT, NOTICE)
    poke(notice + SENDER, peek(state + layout.RANK))
    poke(notice + NOTICE_COMPLETED, peek(mpi + table.COMPLETED))
    for rank in range(size):
        record = state + layout.RANK_RECORDS + rank * layout.RECORD_BYTES
        poke(notice + NOTICE_REASONS + 8 * rank, peek(record + layout.REASON))
    for node in range(peek(mpi + table.NODES)):
        if node != peek(mpi + table.NODE):
            request = peek(mpi + table.NEWS_REQUESTS) + 8 * node
            count = NOTICE_REASONS + 8 * size
            calls.begin_send(mpi, notice, count, _leader_of(mpi, node), TAG, request)
    _await_sends(mpi)


@routine
def _await_sends(mpi):
    """Give small sends the moment they need; what is left is read from memory that stays."""
    until = libc.monotonic_ns() + LAST_SENDS_NS
    for node in range(peek(mpi + table.NODES)):
        if node == peek(mpi + table.NODE):
            continue
        while True:
            code = calls.test(mpi, peek(mpi + table.NEWS_REQUESTS) + 8 * node)
            if code != 0 or peek(mpi + table.FLAG) != 0 or libc.monotonic_ns() > until:
                break
            libc.sched_yield()


@routine
def tell_failure(state, own_reason):
    """Send a notice, if it is for this rank to do so.

    The leader tells what happened on its node, unless it is the leader that is at fault; then the
    others do.
    """
    mpi = table_of(state)
    own = state + layout.RANK_RECORDS + peek(state + layout.RANK) * layout.RECORD_BYTES
    if own_reason != layout.ARRIVED_IN_TIME:
        poke(own + layout.REASON, own_reason)
    leader = (
        state
        + layout.RANK_RECORDS
        + (_leader_of(mpi, peek(mpi + table.NODE)) * layout.RECORD_BYTES)
    )
    if leads(mpi) or peek(leader + layout.REASON) != layout.ARRIVED_IN_TIME:
        send_notice(state)
    if own_reason != layout.ARRIVED_IN_TIME:
        poke(own + layout.REASON, layout.ARRIVED_IN_TIME)


@routine
def ask_who_is_here(state, mpi):
    """Send a question to every other leader."""
    _write_small(state, mpi, QUESTION)
    for node in range(peek(mpi + table.NODES)):
        poke(peek(mpi + table.HEARD) + 8 * node, 0)
        if node != peek(mpi + table.NODE):
            _send_small_to(mpi, node)


@routine
def _write_small(state, mpi, sort):
    poke(peek(mpi + table.SMALL_OUT) + SORT, sort)
    poke(peek(mpi + table.SMALL_OUT) + SENDER, peek(state + layout.RANK))


@routine
def _send_small_to(mpi, node):
    """Send the small message; one this short has left when the call returns."""
    request = peek(mpi + table.NEWS_REQUESTS) + 8 * node
    small = peek(mpi + table.SMALL_OUT)
    calls.begin_send(mpi, small, SMALL_BYTES, _leader_of(mpi, node), TAG, request)
    calls.test(mpi, request)


@routine
def read_news(state):
    """Take in all messages that are here."""
    mpi = table_of(state)
    size = peek(state + layout.COMM_SIZE)
    message = peek(mpi + table.NEWS_IN)
    while True:
        poke(mpi + table.FLAG, 0)
        if calls.probe(mpi, TAG) != 0 or peek(mpi + table.FLAG) == 0:
            return
        if calls.receive(mpi, message, NOTICE_REASONS + 8 * size, TAG) != 0:
            return
        node = peek(peek(mpi + table.NODE_OF) + 8 * peek(message + SENDER))
        sort = peek(message + SORT)
        if sort == NOTICE:
            _take_notice(mpi, message, size)
        elif sort == QUESTION:
            _write_small(state, mpi, ANSWER)
            _send_small_to(mpi, node)
        else:
            poke(peek(mpi + table.HEARD) + 8 * node, 1)


@routine
def _take_notice(mpi, message, size):
    completed = peek(message + NOTICE_COMPLETED)
    if peek(mpi + table.NEWS_SEEN) != 0:
        completed = min(completed, peek(mpi + table.TOLD))
    poke(mpi + table.TOLD, completed)
    poke(mpi + table.NEWS_SEEN, 1)
    poke(mpi + table.TELLER, peek(message + SENDER))
    poke(mpi + table.NEWS_COUNT, peek(mpi + table.NEWS_COUNT) + 1)
    for rank in range(size):
        reason = peek(message + NOTICE_REASONS + 8 * rank)
        if reason != layout.ARRIVED_IN_TIME:
            poke(peek(mpi + table.REASONS) + 8 * rank, reason)
