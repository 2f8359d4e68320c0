"""The journal of a rank: its last calls, the rank it waits for, its statistics, its exception.

Only the rank itself writes its journal. The journal lies in shared memory: the other ranks, and
``cobre-comm status``, read it while it is written, and also after the rank was killed.

Order of the stores when a call begins: ``called``, then the words of the call's row, and last the
``number`` of the row. All these stores are releases, and all loads in :func:`copy_journal_kernel`
are acquires. A row is whole if it has the number of the call that belongs there, and if ``called``,
loaded after the row, is ahead of that number by less than a whole ring of rows: then no word of a
later call can have been read. The words that a rank adds when it leaves a call may be missing in a
copy. Each statistic is a single word; in a copy, one statistic may be a call ahead of another.

Waiting. Only the first step of a call counts, because later steps only move data. In the first step
a rank awaits the other ranks one after another, and notes each rank that does not come within a few
looks. The last rank that it notes has arrived last.

Exceptions. When an exception ends a rank, the rank notes the words of the exception before it says
that it closes. Leaders send such words to each other. A leader writes the words that it receives
into its own journal, and its followers read them there.

The library's own collectives, inside ``split`` for example, count in the row LIBRARY.

Phases. Once a phase has a name, every call also counts in the phase under way
(``collective/phases.py``). When a rank enters a phase, the ticks of that moment are subtracted from
the word ``ticks`` of the phase. So the word of the phase under way is below zero, and a reader adds
the ticks of now to a word below zero, without a look at any other word.

Times are ticks (``machine/ticks.py``); ``born_ticks`` and ``born_ns`` are one moment.
"""

from typing import NamedTuple

from cobre_kernels.collective.calls import ALLREDUCE, CALLED, EXACT_SUM, OPERATIONS, OWN
from cobre_kernels.collective.dtypes import EXACT
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import load_acquire, load_relaxed, peek, poke, store_release
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.record import (
    LINE_BYTES,
    WORD_BYTES,
    Record,
    own_rows,
    part,
    shared,
    word,
)
from cobre_kernels.machine.ticks import ticks

JOURNAL_MAGIC = 0x344E524A45524243  # "CBREJRN4", little-endian
CALLS = 64  # a power of two
SHORT_BYTES = 64  # a call of at most this many bytes is noted after its first step has begun
OPERATION_ROWS = max(OPERATIONS) + 1  # each operation has the row of its number
LIBRARY = 0  # the row of the library's own collectives; no operation has this number
OUTSIDE = 0  # the number of the phase of a rank that is in no phase of the program
PHASES = 30  # the most phases that can have names; their numbers begin with 1
IN_LIBRARY = PHASES + 1  # the phase of a rank in a method that calls the library's own collectives
PHASE_ROWS = PHASES + 2
NAME_WORDS = 6
NAME_BYTES = NAME_WORDS * WORD_BYTES
JOB_WORDS = 8
RAISED_ROWS = 4  # how many exceptions a rank can keep: its own, and those of other ranks
RAISED_WORDS = 31
RAISED_BYTES = RAISED_WORDS * WORD_BYTES
NOBODY = -1
ANOTHER_NODE = -2  # some rank of another node

NOTED_CALL = Record(
    "NotedCall",
    "One call of a rank; shared, written by that rank.",
    number=shared("number of the call, from 1 on; stored last"),
    signature=shared("the signature: operation, dtype, op or root (calls.py)"),
    count=shared("number of elements of this rank; for a broadcast, the number of bytes"),
    size_bytes=shared("bytes that this rank contributes; for a broadcast, the bytes of the root"),
    entered=shared("ticks when the rank entered the call"),
    left=shared("ticks when the rank had its result; 0: it has no result yet"),
    came=shared("ticks when the last rank had arrived; 0: this rank waited for nobody"),
    last=shared("the rank that arrived last, if this rank waited"),
)

OPERATION = Record(
    "Operation",
    "One rank's calls of one operation, or its calls in one phase; shared, written by that rank.",
    calls=shared("number of completed calls"),
    size_bytes=shared("bytes that the rank contributed in these calls"),
    ticks=shared("ticks from entering to leaving, of all these calls together"),
    waited_calls=shared("number of calls in which the rank waited for another rank"),
    waited_ticks=shared("ticks until the last rank had arrived, of all these calls together"),
    worst=shared("the other rank for which this rank has waited longest, over all calls"),
    worst_calls=shared("number of calls in which that other rank arrived last"),
    worst_ticks=shared("ticks until that other rank had arrived, over these calls"),
)

LETTERS = Record("Letters", "Eight letters, as UTF-8.", value=shared("letters"))

PHASE = Record(
    "Phase",
    "A phase of the program, and the time of one rank in it; shared, written by that rank.",
    entered=shared("how often the rank has entered the phase"),
    ticks=shared("ticks in the phase; while the rank is there, less the ticks of its last entry"),
    collectives=part(OPERATION, "the collectives in the phase"),
    name=own_rows(LETTERS, "name of the phase, with zeros behind it", NAME_WORDS),
)

RAISED = Record(
    "Raised",
    "An exception by which a rank has ended; shared, written by the rank whose journal it is.",
    rank=shared("number of the rank that has ended, plus 1; 0: this row is free; stored last"),
    words=own_rows(LETTERS, "type and first line of the exception, zeros behind", RAISED_WORDS),
)

JOURNAL = Record(
    "Journal",
    "The last calls of one rank, and its statistics; shared, written by that rank.",
    line_bytes=LINE_BYTES,
    magic=shared("JOURNAL_MAGIC, stored when the words from here to job are valid"),
    pid=shared("process id in its own PID namespace"),
    rank=shared("number of this rank"),
    size=shared("number of ranks of the communicator"),
    backend=shared("number that stands for the backend"),
    communicator=shared("number of the communicator in its process; 0 is the first"),
    born_ticks=shared("ticks when the journal began"),
    born_ns=shared("the monotonic clock at the moment of born_ticks"),
    job=own_rows(LETTERS, "name of the job, with zeros behind it", JOB_WORDS),
    called=shared("number of the last call that has begun", begins_line=True),
    ended=shared("status of the collective that broke the communicator, or CLOSED_WELL; 0: none"),
    awaited=shared("the rank that this rank waits for now, or ANOTHER_NODE, or NOBODY"),
    awaited_in=shared("number of the call in which this rank waits for that rank"),
    awaited_since=shared("ticks when this wait became slow"),
    named=shared("how many phases have names; 0: no time is attributed to phases"),
    phase=shared("number of the phase under way"),
    raised=own_rows(RAISED, "exceptions that this rank knows of", RAISED_ROWS, begins_line=True),
    operations=own_rows(OPERATION, "a row for each operation", OPERATION_ROWS, begins_line=True),
    phases=own_rows(PHASE, "the phases, by their numbers", PHASE_ROWS, begins_line=True),
    calls=own_rows(NOTED_CALL, "the last calls; call n is in row n modulo CALLS", CALLS),
)
CLOSED_WELL = -1
WORDS_OFFSET = RAISED.offsets["words"]
RAISED_OFFSET = JOURNAL.offsets["raised"]
HEAD_BYTES = JOURNAL.offsets["calls"]
NOTED_BYTES = NOTED_CALL.size_bytes

WAITED = Record(
    "Waited",
    "How one rank was waited for, in one operation or one phase.",
    calls=word("number of calls in which that rank arrived last"),
    ticks=word("ticks until that rank had arrived, of all these calls together"),
)


class Owner(NamedTuple):
    """The rank of a journal, and more; ``job`` is the address of JOB_WORDS words of letters."""

    rank: int
    size: int
    backend: int
    pid: int
    communicator: int
    job: int


class Raised(NamedTuple):
    """The words of an exception: RAISED_WORDS words of letters at an address."""

    rank: int
    words: int


class Copy(NamedTuple):
    """Addresses of the copy of a journal, and of two words for the ticks and the clock of now."""

    target: int
    now: int


@kernel(JOURNAL, Owner)
def open_journal_kernel(journal, call):
    """Begin the journal of a rank. The releases pair with the loads in copy_journal_kernel."""
    store_release(journal.rank, call.rank)
    store_release(journal.size, call.size)
    store_release(journal.backend, call.backend)
    store_release(journal.pid, call.pid)
    store_release(journal.communicator, call.communicator)
    for index in range(JOB_WORDS):
        store_release(journal.job[index].value, peek(call.job + index * WORD_BYTES))
    store_release(journal.awaited, NOBODY)
    store_release(journal.born_ticks, ticks())
    store_release(journal.born_ns, libc.monotonic_ns())
    # Pairs with the load of this word in copy_journal_kernel, which is the first load there.
    store_release(journal.magic, JOURNAL_MAGIC)
    return 0


@routine
def noted_call(journal, number):
    """Return the row in which a call is noted."""
    return journal.calls[number & (CALLS - 1)]


@routine
def note_call(comm, size_bytes):
    """Note a call that begins; a short call over shared memory is noted by ``shm/step.py`` later.

    In a short call, the rank first enters the step for which other ranks wait, and then notes the
    call. So the other ranks do not wait for the note.
    """
    comm.first_step = comm.node.generation + 1
    comm.came = 0
    comm.size_bytes = size_bytes
    comm.unnoted = 1
    if size_bytes > SHORT_BYTES or comm.node.control.address == 0:
        note_entered(comm)


@routine
def note_entered(comm):
    """Note the call under way. The releases pair with the loads in copy_journal_kernel."""
    comm.unnoted = 0
    journal = comm.journal
    number = load_relaxed(journal.called) + 1
    store_release(journal.called, number)
    noted = noted_call(journal, number)
    store_release(noted.signature, comm.signature & CALLED)
    store_release(noted.count, comm.count)
    store_release(noted.size_bytes, comm.size_bytes)
    store_release(noted.left, 0)
    store_release(noted.came, 0)
    store_release(noted.entered, ticks())
    store_release(noted.number, number)


@routine
def note_left(comm):
    """Note that a call has its result, and count the call.

    The releases pair with the loads in copy_journal_kernel.
    """
    journal = comm.journal
    noted = noted_call(journal, load_relaxed(journal.called))
    left = ticks()
    store_release(noted.left, left)
    if comm.came != 0:
        store_release(noted.last, comm.last)
        store_release(noted.came, comm.came)
    row = _row_of(comm.signature)
    entered = load_relaxed(noted.entered)
    _count(comm, journal.operations[row], row, entered, left)
    if load_relaxed(journal.named) != 0:
        phase = load_relaxed(journal.phase)
        _count(comm, journal.phases[phase].collectives, OPERATION_ROWS + phase, entered, left)


@routine
def _count(comm, operation, row, entered, left):
    """Count a call in a row of operations or phases."""
    add(operation.calls, 1)
    add(operation.size_bytes, comm.size_bytes)
    add(operation.ticks, left - entered)
    if comm.came != 0:
        _count_wait(comm, operation, row, comm.came - entered)


@routine
def _row_of(signature):
    """Return the row of a call's operation."""
    if signature & OWN != 0:
        return LIBRARY
    is_exact_sum = signature & 0xFFFF == ALLREDUCE | EXACT << 8
    return EXACT_SUM if is_exact_sum else signature & 0xFF


@routine
def add(address, amount):
    """Add to a word to which no other rank writes.

    The release pairs with the load in copy_journal_kernel.
    """
    store_release(address, load_relaxed(address) + amount)


@routine
def _count_wait(comm, operation, row, waited):
    """Count the rank that arrived last. The releases pair with loads in copy_journal_kernel."""
    last = comm.last
    add(operation.waited_calls, 1)
    add(operation.waited_ticks, waited)
    waits = comm.waits[row * comm.size + last]
    waits.calls += 1
    waits.ticks += waited
    if waits.ticks > load_relaxed(operation.worst_ticks):
        store_release(operation.worst, last)
        store_release(operation.worst_calls, waits.calls)
        store_release(operation.worst_ticks, waits.ticks)


@routine
def note_arrival(comm, rank):
    """Note that an awaited rank has arrived, if this is the first step of a call."""
    if comm.node.generation == comm.first_step:
        comm.came = ticks()
        comm.last = rank


@routine
def note_slow_wait(comm, rank):
    """Show for which rank this rank waits.

    The releases pair with the loads in copy_journal_kernel.
    """
    journal = comm.journal
    store_release(journal.awaited, rank)
    store_release(journal.awaited_since, ticks())
    store_release(journal.awaited_in, load_relaxed(journal.called))


@routine
def note_no_wait(comm):
    """Show that this rank waits for no other rank any more.

    The release pairs with the load in copy_journal_kernel.
    """
    store_release(comm.journal.awaited, NOBODY)


@routine
def note_end(comm, status):
    """Show how the communicator ended. The release pairs with the load in copy_journal_kernel.

    The time of a failed call counts as waiting in the phase under way, and not as computing.
    """
    journal = comm.journal
    called = load_relaxed(journal.called)
    noted = noted_call(journal, called)
    if called != 0 and load_relaxed(noted.left) == 0 and load_relaxed(journal.named) != 0:
        collectives = journal.phases[load_relaxed(journal.phase)].collectives
        took = ticks() - load_relaxed(noted.entered)
        add(collectives.ticks, took)
        add(collectives.waited_ticks, took)
    store_release(journal.ended, status)


@routine
def note_raised(journal, rank, words):
    """Note the words of a rank's exception, unless they are noted already, or no row is free.

    The releases pair with the loads in copy_journal_kernel and in :func:`learn_raised`.
    """
    for row in range(RAISED_ROWS):
        raised = journal.raised[row]
        found = load_relaxed(raised.rank)
        if found == rank + 1:
            return
        if found == 0:
            for index in range(RAISED_WORDS):
                value = load_acquire(words + index * WORD_BYTES)
                store_release(raised.words[index].value, value)
            store_release(raised.rank, rank + 1)
            return


@routine
def learn_raised(comm, rank):
    """Note the exception by which another rank has ended, if its journal can be read here.

    The load pairs with the last store in :func:`note_raised`, which the other rank has made.
    """
    theirs = comm.journals[rank]
    if theirs == 0 or rank == comm.rank:
        return
    raised = theirs + RAISED_OFFSET  # the first row: a rank notes its own exception before others
    if load_acquire(raised) == rank + 1:
        note_raised(comm.journal, rank, raised + WORDS_OFFSET)


@routine
def take_raised(journal, row, target):
    """Copy the words in a row of this rank's own journal; return the rank that has raised.

    Return NOBODY if the row is free.
    """
    raised = journal.raised[row]
    for index in range(RAISED_WORDS):
        poke(target + index * WORD_BYTES, load_relaxed(raised.words[index].value))
    return load_relaxed(raised.rank) - 1


@kernel(JOURNAL, Raised)
def note_raised_kernel(journal, call):
    """Note the exception by which this rank ends."""
    note_raised(journal, call.rank, call.words)
    return 0


@kernel(JOURNAL, Copy)
def copy_journal_kernel(journal, call):
    """Copy the journal of a rank that runs or has died. A row that is not whole gets number 0."""
    for word_offset in range(0, HEAD_BYTES, WORD_BYTES):
        poke(call.target + word_offset, load_acquire(journal.address + word_offset))
    for row in range(CALLS):
        noted = journal.calls[row]
        target = call.target + noted.address - journal.address
        number = load_acquire(noted.number)
        for word_offset in range(WORD_BYTES, NOTED_BYTES, WORD_BYTES):
            poke(target + word_offset, load_acquire(noted.address + word_offset))
        is_whole = load_acquire(journal.called) < number + CALLS
        poke(target, number if is_whole else 0)
    poke(call.now, ticks())
    poke(call.now + WORD_BYTES, libc.monotonic_ns())
    return 0
