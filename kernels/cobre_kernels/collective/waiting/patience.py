"""The waiting policy of every transport: what a wait does between its looks.

A wait spins for ``comm.spin_ns``, yields the core for ``comm.yield_ns``, and then blocks without
the GIL. Every TICK_NS it looks around, also while it spins: for signals, for lost peers, and at the
timeout.

The timeout leaves out the time in which this rank itself did not run, because then nobody was late
to it: its job, container or machine was suspended. A wait reads the clock at least every TICK_NS.
If more than STALL_NS pass between two readings, they count as one tick. So a rank that a busy
machine starves waits longer, but not for ever: each look takes a tick from its patience.

Long before the timeout, a line of the log tells who is late: when a wait has lasted
``comm.late_ns``, and again after twice that, four times, and so on. The transport marks in
``comm.late`` who that is, and Python writes the line (``cobre_comm/backends/late_lines.py``).
"""

from cobre_kernels.collective.guard import is_forked
from cobre_kernels.collective.status import INTERRUPTED, IS_FORKED, OK
from cobre_kernels.collective.waiting.pulse import beat, heed_pulse
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import poke
from cobre_kernels.machine.routine import routine

TICK_NS = 50_000_000  # how often a wait asks for signals and for dead peers
STALL_NS = 500_000_000  # ten ticks: a busy machine lets a rank that wakes up run sooner
FIRST_NAP_NS = 20_000  # a wait that cannot be woken sleeps this long, then twice that, ...
LONGEST_NAP_NS = 1_000_000


@routine
def begin_wait(comm):
    """Let the timeout count from now."""
    comm.clock_ns = libc.monotonic_ns()
    comm.wait_began_ns = comm.clock_ns
    comm.late_lines = 0


@routine
def read_clock(comm):
    """Note the time in ``comm.clock_ns``; tell whether this rank has not run for a while.

    A leader that waits for other nodes shows its own that it does.
    """
    beat(comm)
    now = libc.monotonic_ns()
    gap_ns = now - comm.clock_ns
    comm.clock_ns = now
    if gap_ns <= STALL_NS:
        return False
    comm.wait_began_ns += gap_ns - TICK_NS
    return True


@routine
def is_overdue(comm):
    """Tell whether the timeout was over when this wait last read the clock."""
    heed_pulse(comm)
    return 0 < comm.timeout_ns <= comm.clock_ns - comm.wait_began_ns


@routine
def is_line_due(comm):
    """Tell whether this wait has lasted so long that a line is to tell for whom it is."""
    waited_ns = comm.clock_ns - comm.wait_began_ns
    return 0 < comm.late_ns <= waited_ns >> comm.late_lines


@routine
def write_late_line(comm):
    """Have a line tell of the ranks that are marked in ``comm.late``.

    A thread of its own writes it. So a log that takes its time holds up no wait, and no code of
    Python's runs in this thread, whose wait a signal handler may not be able to end.
    """
    ensured = libc.gil_ensure()
    started = libc.call_object(comm.write_late_line, 0)
    if started == 0:
        libc.clear_exception()  # no thread is to be had; the next line may find one
    else:
        libc.count_down(started)
    libc.gil_release(ensured)


@routine
def remaining_ns(comm):
    """Return how long a blocked wait sleeps: a tick, or less where the timeout is nearer."""
    if comm.timeout_ns <= 0:
        return TICK_NS
    return min(TICK_NS, max(comm.wait_began_ns + comm.timeout_ns - libc.monotonic_ns(), 1))


@routine
def first_spin_ns(comm):
    """Return how long a wait spins before it first looks around."""
    return min(comm.spin_ns, TICK_NS)


@routine
def spins_on(comm):
    """Tell whether a wait that has looked around goes on spinning, instead of blocking."""
    return comm.spin_ns > TICK_NS and comm.clock_ns - comm.wait_began_ns < comm.spin_ns


@routine
def run_handlers(comm):
    """Run Python's signal handlers; keep what they raised for the exception to come.

    Return OK to go on waiting. No other Python code runs inside a kernel. So a handler that forks
    makes a child that goes on from here: it must leave, and touch nothing that it shares with the
    ranks. What a handler interrupts is noted under the GIL; a handler may wait, and be interrupted.
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
