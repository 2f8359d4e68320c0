"""The waiting loop of sockets: spin, yield, block; with timeout, control messages and signals.

A leader that can move no byte pauses here between two progress steps. It blocks in poll(2) on what
it waits for and on all control links, so that a death, a failure or a goodbye anywhere ends its
wait. The timeout counts from when the last byte moved: a slow link is not a late rank.
"""

from cobre_kernels.collective.comm import DIED
from cobre_kernels.collective.seeing.journal import note_no_wait, note_slow_wait
from cobre_kernels.collective.status import OK, TIMED_OUT
from cobre_kernels.collective.waiting.patience import (
    TICK_NS,
    begin_wait,
    first_spin_ns,
    is_line_due,
    is_overdue,
    read_clock,
    remaining_ns,
    run_handlers,
    spins_on,
    write_late_line,
)
from cobre_kernels.collective.waiting.pulse import beat
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import cpu_pause
from cobre_kernels.machine.routine import routine
from cobre_kernels.tcp.links import NO_LINK, NOBODY
from cobre_kernels.tcp.progress.control import (
    await_control,
    end_control,
    query_liveness,
    read_control,
)
from cobre_kernels.tcp.progress.failing import (
    failure_by_timeout,
    failure_of_step,
    first_awaited,
    mark_late,
)
from cobre_kernels.tcp.progress.sockets import NS_PER_MS
from cobre_kernels.tcp.protocol import ANSWER_POLL_MS, EXPLANATION_MS


@routine
def begin_verb(comm):
    """Begin to move bytes; nothing is known yet of how long that takes."""
    links = comm.links
    links.awaited_in = NOBODY
    links.awaited_out = NOBODY
    links.wants_in = 0
    links.wants_out = 0
    links.looked_ns = 0
    note_progress(comm)


@routine
def note_progress(comm):
    """Bytes have moved: waiting begins anew."""
    comm.links.idle_since = 0
    comm.links.overdue_since = 0
    beat(comm)
    if comm.wait_began_ns != 0:
        note_no_wait(comm)
    comm.wait_began_ns = 0


@routine
def pause(comm):
    """Let time pass between two fruitless progress steps; return OK, or how the wait ended."""
    links, now = comm.links, libc.monotonic_ns()
    if links.idle_since == 0:
        links.idle_since = now
    idle_ns = now - links.idle_since
    if idle_ns < first_spin_ns(comm):
        cpu_pause()
        return OK
    if idle_ns < first_spin_ns(comm) + comm.yield_ns:
        libc.sched_yield()
        return OK
    outcome = failure_of_step(comm)  # by what came while this leader was elsewhere
    return _block(comm) if outcome == OK else outcome


@routine
def _block(comm):
    """Sleep until something can move; return OK, or how the wait ended.

    A wait that goes on spinning does not sleep: it returns OK after one look at the descriptors.
    """
    links = comm.links
    if comm.wait_began_ns == 0:
        begin_wait(comm)
        note_slow_wait(comm, first_awaited(comm))
    if links.looked_ns == 0:
        links.looked_ns = comm.clock_ns
    while True:
        data, count = _list_descriptors(comm)
        spins = spins_on(comm)
        ready = libc.poll(links.polls[0].address, count, 0 if spins else _patience_ms(comm))
        if read_clock(comm):
            links.overdue_since = 0  # the others did not run either: they are queried anew
        now = comm.clock_ns
        can_move = ready > 0 and _has_events(comm, data)
        is_time = now - links.looked_ns >= TICK_NS  # also if bytes move all the time
        if can_move and not is_time:
            return OK
        outcome = _read_ready_control(comm, data) if ready > 0 else OK
        if outcome == OK and (is_time or (ready <= 0 and not spins)):
            links.looked_ns = now
            outcome = run_handlers(comm)
            if outcome == OK and is_line_due(comm):
                mark_late(comm)
                write_late_line(comm)
                comm.late_lines += 1
        if outcome == OK and can_move:
            return OK
        if outcome == OK and is_overdue(comm):
            outcome = failure_by_timeout(comm, now)
        if outcome != OK:
            is_late = outcome == TIMED_OUT
            comm.waited_ns = comm.timeout_ns if is_late else now - comm.wait_began_ns
        if outcome != OK or spins:
            return outcome


@routine
def _patience_ms(comm):
    """Return how long one poll lasts."""
    if comm.links.overdue_since != 0:
        return ANSWER_POLL_MS
    return -(-remaining_ns(comm) // NS_PER_MS)


@routine
def _list_descriptors(comm):
    """Fill the entries for poll: what is awaited, then control links and processes."""
    links = comm.links
    count = 0
    for node in range(comm.nodes.nodes):
        peer = links.peers[node]
        events = libc.POLLIN if peer.filled < peer.wanted else 0
        if peer.header_left + peer.payload_left > 0:
            events |= libc.POLLOUT
        if events != 0:
            count = _list(links, count, peer.data_fd, events)
    if links.wants_in != 0:
        count = _list(links, count, links.previous.data_fd, libc.POLLIN)
    if links.wants_out != 0:
        count = _list(links, count, links.next.data_fd, libc.POLLOUT)
    data = count
    for node in range(comm.nodes.nodes):
        peer = links.peers[node]
        if peer.control_fd != NO_LINK:
            count = _list(links, count, peer.control_fd, libc.POLLIN)
            if peer.process_fd != NO_LINK:
                count = _list(links, count, peer.process_fd, libc.POLLIN)
    return data, count


@routine
def _list(links, count, fd, events):
    links.polls[count].entry = fd | events << 32
    return count + 1


@routine
def _events(comm, index):
    """Return what poll has found for an entry."""
    return comm.links.polls[index].entry >> 48 & 0xFFFF


@routine
def _has_events(comm, count):
    found = 0
    for index in range(count):
        found |= _events(comm, index)
    return found != 0


@routine
def _read_ready_control(comm, first):
    """Read the control links that have something; answer queries; return what follows.

    A process that has ended is as a control link that ends, once what it has sent is read.
    """
    index, began = first, libc.monotonic_ns()
    for node in range(comm.nodes.nodes):
        peer = comm.links.peers[node]
        if peer.control_fd != NO_LINK:
            is_watched = peer.process_fd != NO_LINK
            if _events(comm, index) != 0:
                read_control(comm, node)
                if peer.heard_ns > began:
                    query_liveness(comm, began)
            if is_watched and _events(comm, index + 1) != 0:
                await_control(comm, node, EXPLANATION_MS)
                end_control(peer, DIED)
            index += 2 if is_watched else 1
    return failure_of_step(comm)
