"""The waiting policy of every transport: what a wait does between its looks.

A wait spins for ``comm.spin_ns``, yields the core for ``comm.yield_ns``, and then blocks without
the GIL. A blocked wait looks around every TICK_NS: for signals, for lost peers, and at the timeout.
"""

from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import poke
from cobre_kernels.machine.routine import routine

TICK_NS = 50_000_000  # how often a blocked wait asks for signals and for dead peers
FIRST_NAP_NS = 20_000  # a wait that cannot be woken sleeps this long, then twice that, ...
LONGEST_NAP_NS = 1_000_000


@routine
def remaining_ns(comm, began):
    """Return how long a blocked wait sleeps: a tick, or less where the timeout is nearer."""
    if comm.timeout_ns <= 0:
        return TICK_NS
    return min(TICK_NS, max(began + comm.timeout_ns - libc.monotonic_ns(), 1))


@routine
def signal_raised(comm):
    """Run Python's signal handlers; keep what they raised for the exception to come."""
    ensured = libc.gil_ensure()
    raised = libc.check_signals() != 0
    if raised:
        kind = comm.pending_exception
        for word in range(0, 24, 8):
            poke(kind + word, 0)
        libc.fetch_exception(kind, kind + 8, kind + 16)
        libc.normalize_exception(kind, kind + 8, kind + 16)
    libc.gil_release(ensured)
    return raised
