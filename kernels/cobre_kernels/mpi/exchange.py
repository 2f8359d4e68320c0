"""An exchange: every leader gives a few bytes to every leader, and no wait for it is blind.

A leader spins, yields and naps, and looks around every TICK_NS: for signals, for control messages
and at the timeout. An exchange touches only memory that lives as long as the process. A wait that
ends early may therefore leave its request behind; MPI completes it at any time later.
"""

from cobre_kernels.collective.comm import ARRIVED, COMM, LATE, UNREACHABLE
from cobre_kernels.collective.journal import ANOTHER_NODE, note_no_wait, note_slow_wait
from cobre_kernels.collective.patience import (
    FIRST_NAP_NS,
    LONGEST_NAP_NS,
    TICK_NS,
    begin_wait,
    first_spin_ns,
    is_overdue,
    read_clock,
    run_handlers,
    spins_on,
)
from cobre_kernels.collective.status import INTERRUPTED, IS_FORKED, LOST_PEER, OK, TIMED_OUT
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import cpu_pause
from cobre_kernels.machine.copy import move
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import calls
from cobre_kernels.mpi.messages import query_leaders, read_messages
from cobre_kernels.nodes.failing import adopt_reasons
from cobre_kernels.nodes.records import ENTERED, PREPARED
from cobre_kernels.nodes.verbs import Exchange

ANSWER_NS = 500_000_000  # how long the others have to answer a liveness query
UNFINISHED = -1
LOOKS_PER_CLOCK = 16


@kernel(COMM, Exchange)
def exchange_kernel(comm, call):
    """Give every leader the first bytes of every header, and what is in it of a payload."""
    mpi, nodes = comm.mpi, comm.nodes
    if mpi.reports > 0 and nodes.phase == ENTERED:  # row REFUSE
        return adopt_reasons(comm, mpi.reasons, mpi.reporter, False)
    if call.payload_bytes > 0:
        move(nodes.header.payload, call.payload, call.payload_bytes)
    mpi.begun += 1
    headers = nodes.headers[0].address
    outcome = calls.begin_allgather(comm, nodes.header.address, headers, call.size_bytes)
    if outcome == OK:
        outcome = _await_exchange(comm)
    if outcome != OK:
        return outcome
    mpi.completed = mpi.begun
    if call.payload != 0:
        for node in range(nodes.nodes):
            move(nodes.landing[node], nodes.headers[node].payload, nodes.got[node])
    return OK


@routine
def _await_exchange(comm):
    outcome = _poll(comm, first_spin_ns(comm), False)
    if outcome == UNFINISHED:
        outcome = _poll(comm, comm.yield_ns, True)
    if outcome == UNFINISHED:
        outcome = _nap(comm)
        note_no_wait(comm)
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
def _nap(comm):
    begin_wait(comm)
    note_slow_wait(comm, ANOTHER_NODE)
    looked = 0
    nap_ns = FIRST_NAP_NS
    comm.mpi.queried_ns = 0
    while True:
        if spins_on(comm):
            found = _poll(comm, TICK_NS, False)
            if found != UNFINISHED:
                return found
        else:
            libc.sleep_ns(nap_ns, comm.scratch)
            nap_ns = min(2 * nap_ns, LONGEST_NAP_NS)
        if read_clock(comm):
            comm.mpi.queried_ns = 0  # the others did not run either: they are queried anew
        outcome = OK
        if comm.clock_ns - looked >= TICK_NS or comm.mpi.queried_ns != 0:
            looked = comm.clock_ns
            outcome = _look_around(comm)
            # What a handler raised is not lost where the exchange completes meanwhile; and a
            # child would take messages of its parent from the library.
            if outcome in (INTERRUPTED, IS_FORKED):
                return outcome
        # A complete exchange counts, also after a control message: row REFUSE covers that.
        found = _look(comm)
        if found != UNFINISHED:
            return found
        if outcome != OK:
            comm.waited_ns = comm.clock_ns - comm.wait_began_ns
            return outcome


@routine
def _look_around(comm):
    """Return OK to go on waiting, or the status of the row that ends the wait."""
    mpi, now = comm.mpi, comm.clock_ns
    is_prepared = comm.nodes.phase == PREPARED
    outcome = OK if is_prepared else run_handlers(comm)
    if outcome != OK:
        return outcome  # row INTERRUPT
    read_messages(comm)
    if mpi.reports > 0 and mpi.reported < mpi.begun:
        return adopt_reasons(comm, mpi.reasons, mpi.reporter, True)  # row RELEASE
    if is_prepared or not is_overdue(comm):
        return OK
    if mpi.queried_ns == 0:  # row QUERY
        mpi.queried_ns = now
        query_leaders(comm)
        return OK
    return OK if now - mpi.queried_ns < ANSWER_NS else _outcome_of_answers(comm)  # row LATE


@routine
def _outcome_of_answers(comm):
    """Name all ranks of the nodes that have not answered; if all have, the network is at fault."""
    mpi, nodes = comm.mpi, comm.nodes
    silent = 0
    for rank in range(comm.size):
        node = nodes.node_of[rank]
        is_here = node == nodes.own_node or mpi.answered[node] != 0
        comm.failures[rank].reason = ARRIVED if is_here else LATE
        silent += 0 if is_here else 1
    if silent > 0:
        return TIMED_OUT
    for rank in range(comm.size):
        if nodes.node_of[rank] != nodes.own_node:
            comm.failures[rank].reason = UNREACHABLE
    return LOST_PEER
