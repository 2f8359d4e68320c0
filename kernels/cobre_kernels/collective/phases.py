"""Phases: the parts of a program to which a rank attributes its time.

A rank is in one phase at a time: in a phase with a name, in OUTSIDE, or in IN_LIBRARY. When the
rank enters another phase, the present ticks are added to the phase that it leaves, and subtracted
from the phase that it enters (``seeing/journal.py``). The time of a collective counts in the phase
in which the collective returns. The rest of a phase's time is computing; a reader of the journal
calculates it.

Nothing is attributed before the first phase has a name. A rank that enters or names a phase first
borrows the guard (``guard.py``). One reason is that the journal of a closed communicator may not
exist any more. The other reason is that another thread may be inside a collective, which counts in
a phase.
"""

from typing import NamedTuple

from cobre_kernels.collective.comm import BROKEN, COMM, IDLE
from cobre_kernels.collective.guard import borrow, give_back, refusal
from cobre_kernels.collective.seeing.journal import NAME_WORDS, OUTSIDE, add
from cobre_kernels.collective.seeing.trace import LeftPhase, Named
from cobre_kernels.collective.status import BAD_PHASE
from cobre_kernels.machine.atomics import load_relaxed, peek, store_release
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.kernel import kernel, run
from cobre_kernels.machine.record import WORD_BYTES
from cobre_kernels.machine.ticks import ticks


class Entering(NamedTuple):
    """The number of a phase."""

    number: int


class Naming(NamedTuple):
    """A new name: NAME_WORDS words of letters at an address."""

    words: int


@routine
def enter(comm, number):
    """Enter a phase; return the number of the phase before, or minus the status of a refusal."""
    held = borrow(comm)
    if held != IDLE and held != BROKEN:
        return -refusal(held)
    is_known = number >= 0 and number <= load_relaxed(comm.journal.named)
    before = _change(comm, number) if is_known else -BAD_PHASE
    give_back(comm, held)
    return before


@routine
def _change(comm, number):
    """Attribute time to another phase from now on; return the number of the present phase.

    The release pairs with the load in copy_journal_kernel.
    """
    journal = comm.journal
    before = load_relaxed(journal.phase)
    now = ticks()
    add(journal.phases[before].ticks, now)
    add(journal.phases[number].ticks, -now)
    add(journal.phases[number].entered, 1)
    store_release(journal.phase, number)
    if comm.trace_call != 0:
        run(comm.trace.add_phase, comm.trace, LeftPhase(before, now))
    return before


@kernel(COMM, Entering)
def enter_kernel(comm, call):
    """Enter a phase from Python."""
    return enter(comm, call.number)


@kernel(COMM, Entering)
def resume_kernel(comm, call):
    """Enter any phase, even IN_LIBRARY, or return to it; return the number of the phase before.

    If phases have no names yet, if the number is below zero, or if the communicator is closed or in
    use, nothing happens, and the result is below zero.
    """
    held = borrow(comm)
    if held != IDLE and held != BROKEN:
        return -refusal(held)
    is_used = call.number >= 0 and load_relaxed(comm.journal.named) != 0
    before = _change(comm, call.number) if is_used else -BAD_PHASE
    give_back(comm, held)
    return before


@kernel(COMM, Naming)
def name_phase_kernel(comm, call):
    """Give the next phase its name; return its number, or minus the status of a refusal.

    The caller makes sure that there is room for another name. The releases pair with the loads
    in copy_journal_kernel. ``named`` is stored last, so a reader that finds a phase counted in
    ``named`` also finds the name of the phase.
    """
    held = borrow(comm)
    if held != IDLE and held != BROKEN:
        return -refusal(held)
    journal = comm.journal
    number = load_relaxed(journal.named) + 1
    for index in range(NAME_WORDS):
        letters = journal.phases[number].name[index].value
        store_release(letters, peek(call.words + index * WORD_BYTES))
    if number == 1:  # the first name: time is attributed from now on
        store_release(journal.phases[OUTSIDE].entered, 1)
        store_release(journal.phases[OUTSIDE].ticks, -ticks())
    store_release(journal.named, number)
    if comm.trace_call != 0:
        run(comm.trace.add_name, comm.trace, Named(number, call.words))
    give_back(comm, held)
    return number
