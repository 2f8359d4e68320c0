"""The waiting policy of every transport: what a rank does between two looks.

A wait is a loop of its transport. The loop looks for a flag, bytes or a request, and calls
:func:`pause` after each look that has found nothing::

    begin_wait(comm, RANKS)
    while outcome == OK and not has_come():
        outcome = pause(comm, LOOKS)
    end_wait(comm, outcome)

A wait spins for a while, then yields the core for a while, and then blocks. How long it spins and
yields depends on its *pace* (``comm.paces``): a rank waits among the ranks of its node, and a
leader also among other leaders. When a wait first blocks, or has lasted for a tick, it becomes a
*long* wait. From then on other ranks can see which rank is awaited, the time counts for the
timeout, and the rank does not hold the GIL. In a long wait the rank *looks around* every tick: it
runs Python's signal handlers, and finds out which ranks are missing. A pace has two kernels for
long waits, by address:

======================  ========================================================================
``block_kernel``        sleeps until a look may succeed, but no longer than it is told. It calls
                        :func:`look_around_soon` if anything else has ended the sleep
``look_around_kernel``  finds out which ranks are lost, and after the timeout, which are late. Marks
                        the late ranks, if a line on them is due. Returns OK, or how the wait ends
======================  ========================================================================

The timeout leaves out time in which this rank itself did not run, because its job, container or
machine was suspended: the other ranks were not late then. A long wait reads the clock at least
every TICK_NS. If more than STALL_NS pass between two readings, this time counts as one tick. If a
busy machine seldom lets a rank run, the rank waits longer, but not for ever, because each look
counts as a tick.

Long before the timeout, a line of the log names the late ranks: for the first time when a wait has
lasted ``comm.late_ns``, then after twice this time, four times this time, and so on. Python writes
the line (``cobre_comm/backends/late_lines.py``).

The pattern for a policy that is separate from the loops which use it is ``SpinWait`` of Rust's
parking_lot_core.
"""

from typing import NamedTuple

from cobre_kernels.collective.comm import COMM, RANKS
from cobre_kernels.collective.guard import is_forked
from cobre_kernels.collective.seeing.journal import note_no_wait, note_slow_wait
from cobre_kernels.collective.status import INTERRUPTED, IS_FORKED, OK, TIMED_OUT
from cobre_kernels.collective.waiting.pulse import beat, heed_pulse
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import cpu_pause, poke
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.kernel import kernel, run, run_alone

# Between two looks, a wait does one of these three.
SPIN = 0
YIELD = 1
BLOCK = 2

TICK_NS = 50_000_000  # the time between two polls of a long wait
ANSWER_POLL_NS = 20_000_000  # how long a wait blocks while it awaits answers to a liveness query
STALL_NS = 500_000_000  # ten ticks; even a busy machine lets a rank that wakes up run sooner
FIRST_NAP_NS = 20_000  # a wait that nothing can wake sleeps this long first
LONGEST_NAP_NS = 1_000_000
LONG_AGO_NS = 1  # in ``looked_ns``: it is time to poll; 0 means that this wait has not polled yet


class Patience(NamedTuple):
    """How long a wait may block."""

    longest_ns: int


class Look(NamedTuple):
    """What a waiting rank does when it polls, in addition to finding lost ranks."""

    is_overdue: int  # 1: the timeout is over, so the rank looks for late ranks too
    is_line_due: int  # 1: the rank marks the late ranks, for a line of the log


@routine
def begin_wait(comm, among):
    """Begin a wait among RANKS or LEADERS, with its own timeout."""
    wait = comm.wait
    wait.among = among
    wait.looked_ns = 0
    wait.awaited = 0
    wait.must_stay = 0
    begin_anew(comm)


@routine
def begin_anew(comm):
    """Make a wait spin again and start its timeout anew: at its start, or when bytes have moved."""
    wait = comm.wait
    wait.began_ns = 0
    wait.queried_ns = 0
    wait.asked_ns = 0
    spin_again(comm)


@routine
def _pace(comm):
    return comm.paces[comm.wait.among]


@routine
def spin_again(comm):
    """Make a wait spin again, without a new start of its timeout."""
    wait = comm.wait
    wait.act = SPIN if _pace(comm).spin_ns > 0 else YIELD
    wait.looks = 0
    wait.entered_ns = 0
    wait.nap_ns = 0


@routine
def end_wait(comm, outcome):
    """End a wait; if it was long and has ended well, show other ranks that it has ended."""
    wait = comm.wait
    if wait.is_long != 0:
        wait.is_long = 0
        libc.regain_gil(wait.thread)
        if outcome == OK:
            note_no_wait(comm)


@routine
def pause(comm, looks):
    """Let time pass after a failed look; return OK to look again, or how the wait ends.

    While a wait spins, it reads the clock at one of ``looks`` looks.
    """
    wait = comm.wait
    wait.looks += 1
    if wait.act == SPIN and wait.looks < looks:
        cpu_pause()
        return OK
    wait.looks = 0
    return run_alone(comm.pause_kernel, comm)


@kernel(COMM)
def pause_kernel(comm):
    """Spin, yield or block once, and poll if it is time; compiled once for all waits."""
    wait = comm.wait
    beat(comm)
    now = _read_clock(comm)
    if wait.entered_ns == 0:
        wait.entered_ns = now
        if wait.looked_ns == 0:
            wait.looked_ns = now
    wait.act = _next_act(comm, now - wait.entered_ns)
    is_due = now - wait.looked_ns >= TICK_NS
    if wait.act == BLOCK or is_due:
        _become_long(comm)
        heed_pulse(comm)
        is_overdue = 0 < _limit_ns(comm) <= waited_ns(comm)
        if is_due or is_overdue:
            outcome = _look_around(comm, is_overdue)
            if outcome != OK:
                return _end_in(comm, outcome)
    if wait.act == SPIN:
        cpu_pause()
    elif wait.act == YIELD:
        libc.sched_yield()
    else:
        outcome = run(_pace(comm).block_kernel, comm, Patience(_remaining_ns(comm)))
        if outcome != OK:
            _read_clock(comm)
            return _end_in(comm, outcome)
    return OK


@routine
def _next_act(comm, spent_ns):
    """Return what a wait does after it has lasted ``spent_ns``: SPIN, YIELD or BLOCK."""
    pace = _pace(comm)
    if spent_ns < pace.spin_ns:
        return SPIN
    yield_ns = 0 if comm.wait.among == RANKS and comm.wait.naps != 0 else pace.yield_ns
    return YIELD if spent_ns < pace.spin_ns + yield_ns else BLOCK


@routine
def _become_long(comm):
    """Show this wait to other ranks, let its time count for the timeout, and release the GIL."""
    wait = comm.wait
    if wait.began_ns == 0:
        wait.began_ns = wait.clock_ns
        wait.lines = 0
    if wait.is_long == 0:
        wait.is_long = 1
        note_slow_wait(comm, wait.awaited)
        wait.thread = libc.release_gil()


@routine
def _read_clock(comm):
    """Note the time, and return it; a gap in which this rank did not run counts as one tick.

    In the gap other leaders may not have run either, so after a gap this rank queries them once
    more.
    """
    wait = comm.wait
    now = libc.monotonic_ns()
    gap_ns = now - wait.clock_ns
    wait.clock_ns = now
    if gap_ns > STALL_NS and wait.began_ns != 0:
        wait.began_ns += gap_ns - TICK_NS
        wait.queried_ns = 0
        wait.asked_ns = 0
    return now


@routine
def waited_ns(comm):
    """Return how long this wait has lasted, without the time that its timeout leaves out."""
    return comm.wait.clock_ns - comm.wait.began_ns


@routine
def _limit_ns(comm):
    """Return how long this wait may last; 0: there is no limit."""
    if comm.wait.among != RANKS or comm.timeout_ns <= 0:
        return comm.timeout_ns
    return comm.timeout_ns + comm.wait.grace_ns


@routine
def look_around_soon(comm):
    """Look around before the wait blocks again."""
    comm.wait.looked_ns = LONG_AGO_NS


@routine
def _look_around(comm, is_overdue):
    """Run signal handlers, unless this wait must not end early; then find out who is missing."""
    wait = comm.wait
    wait.looked_ns = wait.clock_ns
    outcome = OK if wait.must_stay != 0 else _run_handlers(comm)
    if outcome != OK:
        return outcome
    is_line_due = 0 < comm.late_ns <= waited_ns(comm) >> wait.lines
    return run(_pace(comm).look_around_kernel, comm, Look(is_overdue, is_line_due))


@routine
def _end_in(comm, outcome):
    """Note how long the wait had lasted; return its outcome."""
    is_late = outcome == TIMED_OUT
    comm.waited_ns = _limit_ns(comm) if is_late else max(waited_ns(comm), 0)
    return outcome


@routine
def mark_nobody(comm):
    """Remove all marks from ``comm.late``, so that late ranks can be marked."""
    for rank in range(comm.size):
        comm.late[rank] = 0


@routine
def write_late_line(comm):
    """Make a line of the log report the ranks that are marked in ``comm.late``.

    A separate thread writes the line, so a slow log delays no wait. The waiting thread itself runs
    no code of Python, because signal handlers would run in that code, and some waits must not end
    early.
    """
    ensured = libc.gil_ensure()
    started = libc.call_object(comm.write_late_line, 0)
    if started == 0:
        libc.clear_exception()  # no thread could be started; maybe one can for the next line
    else:
        libc.count_down(started)
    libc.gil_release(ensured)


@routine
def _remaining_ns(comm):
    """Return how long a wait blocks: a tick, or less if the timeout or an answer is nearer."""
    wait = comm.wait
    longest_ns, limit_ns = TICK_NS if wait.queried_ns == 0 else ANSWER_POLL_NS, _limit_ns(comm)
    if limit_ns <= 0 or wait.queried_ns != 0:
        return longest_ns
    return min(longest_ns, max(wait.began_ns + limit_ns - wait.clock_ns, 1))


@routine
def nap(comm, longest_ns):
    """Sleep when nothing can wake this rank, longer each time."""
    wait = comm.wait
    wait.nap_ns = min(max(2 * wait.nap_ns, FIRST_NAP_NS), LONGEST_NAP_NS)
    libc.sleep_ns(min(wait.nap_ns, longest_ns), comm.scratch)


@routine
def _run_handlers(comm):
    """Run Python's signal handlers; keep an exception that one raises, until the kernel returns.

    Return OK to continue the wait. This is the only place where Python code runs inside a kernel.
    So a child that a handler forks continues here, and must leave without touching what it shares
    with the ranks. The wait in which the handlers run is noted under the GIL. Afterwards the wait
    that was noted before is noted again, because a handler may itself begin a wait, in which
    handlers run too.
    """
    ensured = libc.gil_ensure()
    before = comm.stop.interrupted
    comm.stop.interrupted = comm.journal.address
    raised = libc.check_signals() != 0
    comm.stop.interrupted = before
    if raised:
        kind = comm.pending_exception
        for word in range(0, 24, 8):
            poke(kind + word, 0)
        libc.fetch_exception(kind, kind + 8, kind + 16)
        libc.normalize_exception(kind, kind + 8, kind + 16)
    libc.gil_release(ensured)
    if raised:
        return INTERRUPTED
    return IS_FORKED if is_forked(comm) else OK
