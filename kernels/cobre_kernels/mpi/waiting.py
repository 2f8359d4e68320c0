"""How a leader waits for MPI: it polls, and no wait for another leader is blind.

A leader spins, yields and naps, and looks around every TICK_NS: for signals, for control messages
and at the timeout. While data moves it yields in place of naps, because MPI moves them as it polls.

A wait that ends early leaves its request behind; MPI completes it at any time later. So only what
touches memory that lives as long as the process may end early: an exchange, and data in staging
buffers. A *bound* wait is for data in the buffers of callers, or for the commit before it.
"""

from cobre_kernels.collective.comm import LATE, PRESENT, UNREACHABLE
from cobre_kernels.collective.seeing.journal import ANOTHER_NODE, note_no_wait, note_slow_wait
from cobre_kernels.collective.status import INTERRUPTED, IS_FORKED, LOST_PEER, OK, TIMED_OUT
from cobre_kernels.collective.waiting.patience import (
    FIRST_NAP_NS,
    LONGEST_NAP_NS,
    TICK_NS,
    begin_wait,
    first_spin_ns,
    is_line_due,
    is_overdue,
    read_clock,
    run_handlers,
    spins_on,
    write_late_line,
)
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import cpu_pause
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import calls
from cobre_kernels.mpi.messages import query_leaders, read_messages
from cobre_kernels.nodes.failing import adopt_reasons
from cobre_kernels.nodes.records import COMMITTED, ENTERED, leader_of, mark_node

ANSWER_NS = 500_000_000  # how long the others have to answer a liveness query
UNFINISHED = -1
LOOKS_PER_CLOCK = 16


@routine
def complete(comm, outcome):
    """Wait until the request that has begun is complete, if it could begin; return the outcome."""
    mpi = comm.mpi
    mpi.begun += 1
    if outcome == OK:
        outcome = _poll(comm, first_spin_ns(comm), False)
    if outcome == UNFINISHED:
        outcome = _poll(comm, comm.yield_ns, True)
    if outcome == UNFINISHED:
        outcome = _wait(comm)
        note_no_wait(comm)
    if outcome == OK:
        mpi.completed = mpi.begun
    return outcome


@routine
def _look(comm):
    """Return OK, UNFINISHED or MPI_FAILED."""
    mpi = comm.mpi
    outcome = calls.status_of_mpi(comm, calls.test(mpi, mpi.request))
    return UNFINISHED if outcome == OK and not calls.flag_is_set(mpi) else outcome


@routine
def _poll(comm, duration_ns, yields):
    deadline = 0
    while True:
        for _ in range(LOOKS_PER_CLOCK):
            found = _look(comm)
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
def _wait(comm):
    begin_wait(comm)
    note_slow_wait(comm, ANOTHER_NODE)
    looked = 0
    nap_ns = FIRST_NAP_NS
    comm.mpi.queried_ns = 0
    comm.mpi.asked_ns = 0
    while True:
        moves_data = comm.nodes.phase == COMMITTED
        if moves_data or spins_on(comm):
            found = _poll(comm, TICK_NS, moves_data)
            if found != UNFINISHED:
                return found
        else:
            libc.sleep_ns(nap_ns, comm.scratch)
            nap_ns = min(2 * nap_ns, LONGEST_NAP_NS)
        if read_clock(comm):
            comm.mpi.queried_ns = 0  # the others did not run either: they are queried anew
            comm.mpi.asked_ns = 0
        outcome = OK
        if comm.clock_ns - looked >= TICK_NS or comm.mpi.queried_ns != 0:
            looked = comm.clock_ns
            outcome = _look_around(comm)
            # What a handler raised is not lost where the request completes meanwhile; and a
            # child would take messages of its parent from the library.
            if outcome in (INTERRUPTED, IS_FORKED):
                return outcome
        # A complete request counts, also after a control message: row REFUSE covers that.
        found = _look(comm)
        if found != UNFINISHED:
            return found
        if outcome != OK:
            comm.waited_ns = comm.clock_ns - comm.wait_began_ns
            return outcome


@routine
def _look_around(comm):
    """Return OK to go on waiting, or the status of the row that ends the wait."""
    mpi, nodes, now = comm.mpi, comm.nodes, comm.clock_ns
    is_bound = nodes.waits_end == 0 and nodes.phase != ENTERED
    outcome = OK if is_bound else run_handlers(comm)
    if outcome != OK:
        return outcome  # row INTERRUPT
    read_messages(comm)
    if is_line_due(comm) and mpi.queried_ns == 0:
        _tell_of_late(comm)
    if is_bound and nodes.phase == COMMITTED:
        return OK
    if mpi.reports > 0 and mpi.reported < mpi.begun:
        return adopt_reasons(comm, mpi.reasons, mpi.reporter, True)  # row RELEASE
    if is_bound or not is_overdue(comm):
        return OK
    if mpi.queried_ns == 0:  # row QUERY
        mpi.queried_ns = now
        query_leaders(comm)
        return OK
    return OK if now - mpi.queried_ns < ANSWER_NS else _outcome_of_answers(comm)  # row LATE


@routine
def _tell_of_late(comm):
    """Query the others; when they have had time to answer, have a line tell who has not."""
    mpi, nodes = comm.mpi, comm.nodes
    if mpi.asked_ns == 0:  # row ASK
        mpi.asked_ns = comm.clock_ns
        query_leaders(comm)
    elif comm.clock_ns - mpi.asked_ns >= ANSWER_NS:  # row TELL
        silent = 0
        for node in range(nodes.nodes):
            is_silent = node != nodes.own_node and mpi.answered[node] == 0
            mark_node(comm, node, is_silent)
            silent += 1 if is_silent else 0
        if silent > 0:  # else the network is slow, and nobody late
            write_late_line(comm)
        mpi.asked_ns = 0
        comm.late_lines += 1


@routine
def _outcome_of_answers(comm):
    """Name the leaders that have not answered.

    If all have, data may go on moving, slowly; in an exchange the network is at fault.
    """
    mpi, nodes = comm.mpi, comm.nodes
    silent = 0
    for rank in range(comm.size):
        comm.failures[rank].reason = PRESENT
    for node in range(nodes.nodes):
        if node != nodes.own_node and mpi.answered[node] == 0:
            comm.failures[leader_of(nodes, node)].reason = LATE
            silent += 1
    if silent > 0:
        return TIMED_OUT
    if nodes.phase == COMMITTED:
        mpi.queried_ns = 0
        comm.wait_began_ns = comm.clock_ns
        return OK
    for rank in range(comm.size):
        if nodes.node_of[rank] != nodes.own_node:
            comm.failures[rank].reason = UNREACHABLE
    return LOST_PEER
