"""The trace: every call of a rank as a row of a file, if a trace was asked for.

A rank adds a row when a call has its result, and when the rank leaves a phase, even inside an
``@njit`` loop. When a phase gets a name, the rank adds a row with the letters of the name. Rows are
collected in private memory, and write(2) writes a full buffer to the file. Each buffer ends with a
row that holds the ticks and the monotonic clock of one moment. A reader needs two such rows to turn
ticks into times. After a write has failed, nothing more is written, so no row follows a row that is
cut; the calls that the file lacks are counted.
"""

from typing import NamedTuple

from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.seeing.journal import NAME_WORDS, NOTED_CALL, OUTSIDE, noted_call
from cobre_kernels.collective.status import OK
from cobre_kernels.machine import libc
from cobre_kernels.machine.atomics import load_relaxed, peek, poke
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.kernel import kernel
from cobre_kernels.machine.record import WORD_BYTES, Record, rows, word
from cobre_kernels.machine.ticks import ticks

LOOKS = 5  # how often both clocks are read for a row of one moment
# Kinds of rows that are no calls; they stand in place of the number of a call.
MOMENT = 0
PHASE_LEFT = -1
PHASE_NAMED = -2

TRACED_CALL = Record(
    "TracedCall",
    "A row of the trace's file: a call, a phase, or one moment on both clocks.",
    number=word("number of the call, or MOMENT, PHASE_LEFT or PHASE_NAMED"),
    signature=word("signature of the call; of a moment, its ticks; of a phase, its number"),
    count=word("elements of the rank; of a moment, the monotonic clock; of a name, first letters"),
    size_bytes=word("bytes that the rank contributed"),
    entered=word("ticks when the rank entered the call or the phase"),
    left=word("ticks when the rank had the result of the call, or left the phase"),
    came=word("ticks when the last rank had arrived; 0: this rank waited for nobody"),
    last=word("the rank that arrived last, if this rank waited"),
)

TRACED_BYTES = TRACED_CALL.size_bytes
assert TRACED_CALL.offsets == NOTED_CALL.offsets  # a row of a call is what the journal noted
NAME_OFFSET = TRACED_CALL.offsets["count"]

TRACE = Record(
    "Trace",
    "The trace of one rank's calls on one communicator; private memory.",
    fd=word("descriptor of the file to which rows go; negative: nothing more is written"),
    used=word("number of rows in memory"),
    capacity=word("rows that go to the file together; memory has room for one row more"),
    lost=word("number of calls that the file lacks; leaving a phase counts as a call"),
    add_phase=word("address of the kernel that adds a row when the rank leaves a phase"),
    add_name=word("address of the kernel that adds a row with the name of a phase"),
    entered=word("ticks when the rank entered the phase under way"),
    rows=rows("TracedCall", "the rows that are not in the file yet"),
)


class LeftPhase(NamedTuple):
    """The number of a phase that a rank leaves, and the ticks when it leaves."""

    phase: int
    ticks: int


class Named(NamedTuple):
    """The number of a phase, and the address of its name: NAME_WORDS words of letters."""

    phase: int
    words: int


@kernel(COMM)
def trace_call_kernel(comm):
    """Add the call that has just got its result."""
    trace = comm.trace
    journal = comm.journal
    noted = noted_call(journal, load_relaxed(journal.called))
    row = trace.rows[trace.used]
    for offset in range(0, TRACED_BYTES, WORD_BYTES):
        poke(row.address + offset, load_relaxed(noted.address + offset))
    _keep_row(trace)
    return OK


@kernel(TRACE, LeftPhase)
def trace_phase_kernel(trace, call):
    """Add the phase that the rank leaves, and note when the next phase begins."""
    if call.phase != OUTSIDE:
        row = trace.rows[trace.used]
        row.number = PHASE_LEFT
        row.signature = call.phase
        row.entered = trace.entered
        row.left = call.ticks
        _keep_row(trace)
    trace.entered = call.ticks
    return OK


@kernel(TRACE, Named)
def trace_name_kernel(trace, call):
    """Add the name of a phase."""
    row = trace.rows[trace.used]
    row.number = PHASE_NAMED
    row.signature = call.phase
    for index in range(NAME_WORDS):
        poke(row.address + NAME_OFFSET + index * WORD_BYTES, peek(call.words + index * WORD_BYTES))
    _keep_row(trace)
    return OK


@routine
def _keep_row(trace):
    """Keep the row that has been filled; if there is no room for another row, write all rows."""
    trace.used += 1
    if trace.used == trace.capacity:
        _write_out(trace)


@kernel(TRACE)
def write_trace_kernel(trace):
    """Write the rows that are still in memory."""
    _write_out(trace)
    return OK


@routine
def _write_out(trace):
    """Write all rows, and after them a row with a moment; count the rows that are not written."""
    _note_moment(trace.rows[trace.used])
    address = trace.rows[0].address
    written = 0
    nbytes = (trace.used + 1) * TRACED_BYTES
    while written < nbytes and trace.fd >= 0:
        got = libc.write(trace.fd, address + written, nbytes - written)
        if got > 0:
            written += got
        elif got != -libc.EINTR:
            trace.fd = -1
    trace.lost += max(0, trace.used - written // TRACED_BYTES)
    trace.used = 0


@routine
def _note_moment(row):
    """Note one moment on both clocks: the pair of LOOKS pairs of readings that took least time."""
    row.number = MOMENT
    shortest = -1
    for _ in range(LOOKS):
        before = ticks()
        now_ns = libc.monotonic_ns()
        took = ticks() - before
        if shortest < 0 or took < shortest:
            shortest = took
            row.signature = before + took // 2
            row.count = now_ns
