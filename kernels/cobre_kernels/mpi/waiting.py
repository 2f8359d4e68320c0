"""How a leader waits for MPI: it polls its request, and reads control messages meanwhile.

``collective/waiting/patience.py`` has the policy. While data moves a leader yields in place of
naps, because MPI moves them as it polls.

A wait that ends early leaves its request behind; MPI completes it at any time later. So only what
touches memory that lives as long as the process may end early: an exchange, and data in staging
buffers. A wait for data in the buffers of callers may not end early, nor the wait for the commit
before it, because MPI may write to those buffers until the request is complete.
"""

from cobre_kernels.collective.comm import COMM, LATE, PRESENT, UNREACHABLE
from cobre_kernels.collective.seeing.journal import ANOTHER_NODE
from cobre_kernels.collective.status import LOST_PEER, OK, TIMED_OUT
from cobre_kernels.collective.waiting.patience import (
    Look,
    Patience,
    begin_wait,
    end_wait,
    nap,
    pause,
    pause_kernel,
    write_late_line,
)
from cobre_kernels.machine import libc
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.routine import routine
from cobre_kernels.mpi import calls
from cobre_kernels.mpi.messages import query_leaders, read_messages
from cobre_kernels.nodes.failing import adopt_reasons
from cobre_kernels.nodes.records import COMMITTED, ENTERED, leader_of, mark_node

ANSWER_NS = 500_000_000  # how long the others have to answer a liveness query
LOOKS_PER_CLOCK = 16
UNFINISHED = -1


@routine
def complete(comm, outcome):
    """Wait until the request that has begun is complete, if it could begin; return the outcome."""
    mpi, nodes = comm.mpi, comm.nodes
    mpi.begun += 1
    begin_wait(comm)
    comm.wait.awaited = ANOTHER_NODE
    comm.wait.is_bound = nodes.waits_end == 0 and nodes.phase != ENTERED
    found = UNFINISHED
    while outcome == OK and found == UNFINISHED:
        found = _look(comm)
        if found == UNFINISHED:
            outcome = pause(comm, LOOKS_PER_CLOCK)
    if outcome == OK:
        outcome = found
    end_wait(comm, outcome)
    if outcome == OK:
        mpi.completed = mpi.begun
    return outcome


@routine
def _look(comm):
    """Return OK, UNFINISHED or MPI_FAILED."""
    mpi = comm.mpi
    outcome = calls.status_of_mpi(comm, calls.test(mpi, mpi.request))
    return UNFINISHED if outcome == OK and not calls.flag_is_set(mpi) else outcome


@kernel(COMM, Patience)
def block_kernel(comm, call):
    """Nap, or yield while data moves."""
    if comm.nodes.phase == COMMITTED:
        libc.sched_yield()
    else:
        nap(comm, call.longest_ns)
    return OK


@kernel(COMM, Look)
def look_around_kernel(comm, call):
    """Read messages; find out who is lost, or late.

    A complete request counts, also after a control message: row REFUSE covers that.
    """
    outcome = _find_missing(comm, call)
    return OK if outcome != OK and _look(comm) != UNFINISHED else outcome


@routine
def _find_missing(comm, call):
    """Return OK to go on waiting, or the status of the row that ends the wait."""
    mpi, nodes, wait = comm.mpi, comm.nodes, comm.wait
    read_messages(comm)
    if call.is_line_due != 0 and wait.queried_ns == 0:
        _tell_of_late(comm)
    if wait.is_bound != 0 and nodes.phase == COMMITTED:
        return OK
    if mpi.reports > 0 and mpi.reported < mpi.begun:
        return adopt_reasons(comm, mpi.reasons, mpi.reporter, True)  # row RELEASE
    if wait.is_bound != 0 or call.is_overdue == 0:
        return OK
    if wait.queried_ns == 0:  # row QUERY
        wait.queried_ns = wait.clock_ns
        query_leaders(comm)
        return OK
    is_time = wait.clock_ns - wait.queried_ns >= ANSWER_NS
    return _outcome_of_answers(comm) if is_time else OK  # row LATE


@routine
def _tell_of_late(comm):
    """Query the others; when they have had time to answer, have a line tell who has not."""
    mpi, nodes, wait = comm.mpi, comm.nodes, comm.wait
    if wait.asked_ns == 0:  # row ASK
        wait.asked_ns = wait.clock_ns
        query_leaders(comm)
    elif wait.clock_ns - wait.asked_ns >= ANSWER_NS:  # row TELL
        silent = 0
        for node in range(nodes.nodes):
            is_silent = node != nodes.own_node and mpi.answered[node] == 0
            mark_node(comm, node, is_silent)
            silent += 1 if is_silent else 0
        if silent > 0:  # else the network is slow, and nobody late
            write_late_line(comm)
        wait.asked_ns = 0
        wait.lines += 1


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
        comm.wait.queried_ns = 0
        comm.wait.began_ns = comm.wait.clock_ns
        return OK
    for rank in range(comm.size):
        if nodes.node_of[rank] != nodes.own_node:
            comm.failures[rank].reason = UNREACHABLE
    return LOST_PEER


KERNELS = (pause_kernel, block_kernel, look_around_kernel)
