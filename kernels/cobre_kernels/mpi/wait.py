"""How a leader waits for the other leaders: spin, yield, nap; with deadline, news and signals.

Only exchanges (round.py) are waited for in this way, and they touch no memory but our own: a wait
that ends early leaves a request behind that may be completed at any time later. Data moves by MPI's
blocking calls, straight from and to where it belongs, once all leaders are *bound*: they have
completed a first exchange and now wait for a second one, which only a notice can end early. Whoever
gave up in the first has sent one and is not in the second; so either all leaders come out of the
second and into the blocking call, or none does.
"""

from cobre_kernels import layout, libc
from cobre_kernels.collective.status import INTERRUPTED, LOST_PEER, MPI_FAILED, OK, TIMED_OUT
from cobre_kernels.machine.atomics import cpu_pause, peek, poke
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import calls, table
from cobre_kernels.mpi.news import ask_who_is_here, read_news
from cobre_kernels.mpi.table import table_of
from cobre_kernels.wait import FIRST_NAP_NS, LONGEST_NAP_NS, TICK_NS, signal_raised

ANSWER_NS = 500_000_000  # how long the others have to say that they are waiting too
UNFINISHED = -1
LOOKS_PER_CLOCK = 16


@routine
def await_exchange(state, mpi, is_bound):
    """Wait until the request in the table is complete; return a status."""
    outcome = _poll(mpi, peek(state + layout.SPIN_NS), False)
    if outcome == UNFINISHED:
        outcome = _poll(mpi, peek(state + layout.YIELD_NS), True)
    if outcome == UNFINISHED:
        outcome = _nap(state, mpi, is_bound)
    if outcome < UNFINISHED:
        poke(state + layout.MPI_ERROR, -outcome - 1)
        return MPI_FAILED
    if outcome == OK:
        poke(mpi + table.COMPLETED, peek(mpi + table.EXCHANGES))
    return outcome


@routine
def _look(mpi):
    """Return OK, UNFINISHED, or minus MPI's code of an error."""
    poke(mpi + table.FLAG, 0)
    code = calls.test(mpi, mpi + table.REQUEST)
    if code != 0:
        return -code - 1
    return OK if peek(mpi + table.FLAG) != 0 else UNFINISHED


@routine
def _poll(mpi, duration_ns, yields):
    deadline = 0
    while True:
        for _ in range(LOOKS_PER_CLOCK):
            found = _look(mpi)
            if found != UNFINISHED:
                return found
            if yields:
                libc.sched_yield()
            else:
                cpu_pause()
        now = libc.monotonic_ns()
        if deadline == 0:
            deadline = now + duration_ns
        elif now >= deadline:
            return UNFINISHED


@routine
def _nap(state, mpi, is_bound):
    began = libc.monotonic_ns()
    looked = 0
    nap_ns = FIRST_NAP_NS
    poke(mpi + table.ASKED_NS, 0)
    while True:
        libc.sleep_ns(nap_ns, state + layout.SCRATCH)
        nap_ns = min(2 * nap_ns, LONGEST_NAP_NS)
        now = libc.monotonic_ns()
        outcome = OK
        if now - looked >= TICK_NS or peek(mpi + table.ASKED_NS) != 0:
            looked = now
            outcome = _look_around(state, mpi, now, began, is_bound)
        # Complete is complete, whatever has been heard meanwhile: that counts for the next step.
        found = _look(mpi)
        if found != UNFINISHED:
            return found
        if outcome != OK:
            poke(state + layout.FAILURE_NS, now - began)
            return outcome


@routine
def _look_around(state, mpi, now, began, is_bound):
    if not is_bound and signal_raised(state):
        return INTERRUPTED
    read_news(state)
    if peek(mpi + table.NEWS_SEEN) != 0 and peek(mpi + table.TOLD) < peek(mpi + table.EXCHANGES):
        return outcome_of_news(state, True)
    if is_bound:
        return OK
    timeout_ns = peek(state + layout.TIMEOUT_NS)
    if timeout_ns == 0 or now - began < timeout_ns:
        return OK
    asked = peek(mpi + table.ASKED_NS)
    if asked == 0:
        poke(mpi + table.ASKED_NS, now)
        ask_who_is_here(state, mpi)
        return OK
    if now - asked < ANSWER_NS:
        return OK
    return _name_the_missing(state, mpi)


@routine
def outcome_of_news(state, has_waited):
    """Turn what notices have told into records; return the status that it means.

    To a rank that has not waited itself, or was the late one, it is the teller who is missing.
    """
    mpi = table_of(state)
    reasons = peek(mpi + table.REASONS)
    own = peek(state + layout.RANK)
    is_late = not has_waited or peek(reasons + 8 * own) == layout.LATE
    if is_late and _only_late(state, reasons):
        poke(_record(state, peek(mpi + table.TELLER)) + layout.REASON, layout.GAVE_UP)
        return LOST_PEER
    for rank in range(peek(state + layout.COMM_SIZE)):
        poke(_record(state, rank) + layout.REASON, peek(reasons + 8 * rank))
    return TIMED_OUT if _only_late(state, reasons) else LOST_PEER


@routine
def _record(state, rank):
    return state + layout.RANK_RECORDS + rank * layout.RECORD_BYTES


@routine
def _only_late(state, reasons):
    for rank in range(peek(state + layout.COMM_SIZE)):
        reason = peek(reasons + 8 * rank)
        if reason != layout.ARRIVED_IN_TIME and reason != layout.LATE:
            return False
    return True


@routine
def _name_the_missing(state, mpi):
    """All ranks of the nodes that have not answered; if all have, the network is at fault."""
    someone = False
    for rank in range(peek(state + layout.COMM_SIZE)):
        node = peek(peek(mpi + table.NODE_OF) + 8 * rank)
        heard = node == peek(mpi + table.NODE) or peek(peek(mpi + table.HEARD) + 8 * node) != 0
        reason = layout.ARRIVED_IN_TIME if heard else layout.LATE
        someone = someone or not heard
        poke(_record(state, rank) + layout.REASON, reason)
    if someone:
        return TIMED_OUT
    for rank in range(peek(state + layout.COMM_SIZE)):
        if peek(peek(mpi + table.NODE_OF) + 8 * rank) != peek(mpi + table.NODE):
            poke(_record(state, rank) + layout.REASON, layout.UNREACHABLE)
    return LOST_PEER
