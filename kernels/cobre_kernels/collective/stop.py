"""A request to stop: a signal to one rank becomes known to all ranks in the same collective.

A signal handler sets the stop flag of its process. An entry looks at it once, when a collective
begins, and marks the rank's signature with STOP. In every collective a rank sees the signature of
every other rank, or that of a leader who has seen those of its node. So when the collective ends,
all ranks have the mark, or none has. A rank keeps the mark. Comparing signatures costs nothing more
until one has it.

A fence is a matter of one node, so it shows only a mark that its ranks know already.
"""

from numba import cfunc, types

from cobre_kernels.collective.calls import FENCE, STOP
from cobre_kernels.machine.atomics import load_relaxed, store_relaxed
from cobre_kernels.machine.record import Record, shared, word
from cobre_kernels.machine.routine import routine

STOP_FLAG = Record(
    "StopFlag",
    "Words for signals to a process: its stop flag, shared with their handler alone, and more.",
    requested=shared("0, or STOP once a signal has asked this process to stop"),
    interrupted=word("address of the journal of the wait in which handlers run; 0: in none"),
)


@routine
def ask(requested):
    """Set a stop flag."""
    store_relaxed(requested, STOP)  # alone: a reader of it reads nothing else with it


def compile_handler(requested):
    """Return a signal handler for C that sets the flag at an address; it lives with the result."""
    return cfunc(types.void(types.int32))(lambda number: ask(requested))


@routine
def mark_of(comm, signature):
    """Return the mark of a collective that begins: STOP or 0."""
    known = comm.signature & STOP
    if signature & 0xFF == FENCE:
        return known
    return known | load_relaxed(comm.stop.requested)


@routine
def hear(comm, difference):
    """Take over the mark of another rank; return the other bits in which its signature differs."""
    if difference & STOP != 0:
        comm.signature |= STOP
    return difference & ~STOP
