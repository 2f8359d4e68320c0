"""A request to stop: a signal to one rank becomes known to all ranks in the same collective.

A signal handler sets the stop flag of its process. An entry reads the flag once, when a collective
begins. If the flag is set, the entry marks the rank's signature with STOP. In every collective a
rank sees the signature of every other rank, or the signature of a leader that has seen the
signatures of its node. So when the collective ends, either all ranks have the mark, or none has it.
A rank keeps the mark from then on. As long as no rank has the mark, the comparison of signatures
costs no more than it would without marks.

Only the ranks of one node take part in a fence. So a fence never brings the mark to a rank: a
fence carries the mark only if all ranks have the mark already.
"""

from cobre_kernels.collective.calls import FENCE, STOP
from cobre_kernels.machine import code
from cobre_kernels.machine.atomics import load_relaxed, store_relaxed
from cobre_kernels.machine.compiled import instruction, routine
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.record import Record, shared, word

STOP_FLAG = Record(
    "StopFlag",
    "Words about signals to this process; the stop flag is shared with the signal handler alone.",
    requested=shared("the stop flag: STOP, if a signal has asked this process to stop; else 0"),
    interrupted=word("address of the journal of the wait in which handlers run now; 0: none run"),
)


@routine
def ask(requested):
    """Set a stop flag."""
    store_relaxed(requested, STOP)  # relaxed: a reader of the flag reads nothing else with it


@instruction
def stop_flag_word():
    """Load the word of the machine code that holds the address of this process's stop flag."""
    raise NotImplementedError("handlers of C are machine code")


@kernel(STOP_FLAG)
def handle_signal_kernel(number):
    """Set the stop flag: a signal handler of C, whose argument is the number of the signal.

    The system does not tell the handler where the flag is. So a word of the machine code holds the
    address of the flag; stop_signals.py sets that word.
    """
    ask(stop_flag_word())
    return 0


def stop_flag_place():
    """Return where the word with the address of the stop flag is, in this process."""
    return code.library().address_of("cobre_stop_flag")


@routine
def mark_of(comm, signature):
    """Return the mark with which this rank begins a collective: STOP or 0."""
    known = comm.signature & STOP
    if signature & 0xFF == FENCE:
        return known
    return known | load_relaxed(comm.stop.requested)


@routine
def hear(comm, difference):
    """Take over the mark of another rank; return the other bits in which the signatures differ."""
    if difference & STOP != 0:
        comm.signature |= STOP
    return difference & ~STOP
