"""Reads the words of a journal as data, whether its rank runs, waits, or has died.

Times are nanoseconds of the machine's monotonic clock (:func:`time.monotonic_ns`).
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np
from cobre_kernels.collective import dtypes
from cobre_kernels.collective.calls import (
    DATA_CALLS,
    EXACT_SUM,
    HASH_MASK,
    HASH_SHIFT,
    OPERATIONS,
    own_call,
    unpack_signature,
)
from cobre_kernels.collective.seeing import journal
from cobre_kernels.collective.seeing.journal import (
    IN_LIBRARY,
    JOURNAL,
    NOTED_CALL,
    OUTSIDE,
    copy_journal_kernel,
)
from cobre_kernels.machine.record import WORD_BYTES, View, peek_now
from numpy.typing import NDArray

from cobre_comm.reduce_op import ReduceOp

JOURNAL_BYTES: int = JOURNAL.size_bytes
OWN_ROW = "library"  # collectives that the library needs for itself, such as those inside split
OUTSIDE_ROW = "outside"  # the time outside all phases of the program
_CALL_WORDS = len(NOTED_CALL.fields)  # the first word is the number of the call


class PastCall(NamedTuple):
    """A call that a rank has begun."""

    number: int  # of this communicator, from 1 on; a call has the same number on all ranks
    operation: str
    dtype: str  # dtype of the elements; "" if the call has no elements
    argument: str  # the root or the ``ReduceOp``; "" if the call has neither
    elements: int  # the rank's own number of elements; for a broadcast, of bytes
    entered_ns: int
    left_ns: int | None  # when the rank had its result; None if it has no result yet
    # If the library itself makes this call: the method that the program has called; else "".
    own: str = ""

    def __str__(self) -> str:
        amount = f"{self.elements} bytes" if self.operation == "broadcast" else f"{self.elements}"
        what = [self.argument, f"{amount} {self.dtype}".rstrip() if self.dtype else ""]
        called = f"#{self.number} {self.operation}({', '.join(filter(None, what))})"
        return f"{called} of {self.own}" if self.own else called


class Journal(NamedTuple):
    """A copy of the journal of one rank."""

    rank: int
    size: int
    backend: int  # ``BackendSpec.number``
    pid: int  # the process, in its own PID namespace
    communicator: int  # the number of the communicator in its process; 0 is the first
    job: str  # the name of the job; "" if no launcher gave a name
    born_ns: int  # when the journal began
    read_ns: int  # when the copy was made
    # The status of the collective that broke the communicator, or CLOSED_WELL if it was closed.
    ended: int | None
    # The rank for which this rank waits now; ANOTHER_NODE if that is some rank on another node.
    awaited: int | None
    awaited_since_ns: int  # when that wait became slow
    calls: tuple[PastCall, ...]  # the last calls, the latest at the end
    phase: str  # the phase under way; "" for a program without phases
    copied: Copied  # the words from which all fields were read; statistics need more of them


def read(address: int) -> Journal | None:
    """Read the journal at an address; None if there is no journal."""
    copied = Copied.at(address)
    return None if copied is None else copied.journal()


def raised_in(address: int, rank: int) -> str:
    """Return a rank's exception from the journal at an address; "" if the journal does not have it.

    The rows are read in place, without a copy, because the text of a row is complete before its
    rank is stored.
    """
    view = JOURNAL.at(address)
    for row in range(journal.RAISED_ROWS):
        raised = view.raised[row]
        if value(raised.rank) == rank + 1:
            return letters_at(raised.words.address, journal.RAISED_BYTES)
    return ""


def letters_at(address: int, nbytes: int) -> str:
    """Return the text in some words of letters, without the zeros at the end."""
    return ctypes.string_at(address, nbytes).rstrip(b"\0").decode(errors="replace")


def words_of(letters: bytes, nbytes: int) -> NDArray[np.int64]:
    """Return letters as words of a record: cut after ``nbytes``, or filled up with zeros."""
    return np.frombuffer(letters[:nbytes].ljust(nbytes, b"\0"), dtype=np.int64)


class Copied:
    """A copy of the words of a journal, with the scale from its ticks to times."""

    def __init__(self, words: NDArray[np.int64], ticks: int, now_ns: int) -> None:
        self.words = words
        self.view: View = JOURNAL.of(words)
        self.now_ns, self.ticks = now_ns, ticks
        elapsed = ticks - value(self.view.born_ticks)
        elapsed_ns = now_ns - value(self.view.born_ns)
        self.ns_per_tick = elapsed_ns / elapsed if elapsed > 0 else 1.0

    @classmethod
    def at(cls, address: int) -> Copied | None:
        """Copy the journal at an address; None if there is no journal."""
        words, now = JOURNAL.array(), np.zeros(2, dtype=np.int64)
        copy_journal_kernel.call(address, words.ctypes.data, now.ctypes.data)
        if value(JOURNAL.of(words).magic) != journal.JOURNAL_MAGIC:
            return None
        return cls(words, *now.tolist())

    def time_ns(self, ticks: int) -> int:
        """Return, for a reading of ticks, the time on the monotonic clock."""
        return self.now_ns - round((self.ticks - ticks) * self.ns_per_tick)

    def duration_s(self, ticks: int) -> float:
        """Convert a number of ticks to seconds."""
        return ticks * self.ns_per_tick * 1e-9

    def journal(self) -> Journal:
        """Return the journal as data."""
        view, calls = self.view, self._calls()
        ended, awaited = value(view.ended), value(view.awaited)
        is_waiting = (
            awaited != journal.NOBODY
            and bool(calls)
            and calls[-1].number == value(view.awaited_in)
            and calls[-1].left_ns is None
        )
        return Journal(
            rank=value(view.rank),
            size=value(view.size),
            backend=value(view.backend),
            pid=value(view.pid),
            communicator=value(view.communicator),
            job=letters_at(view.job.address, journal.JOB_WORDS * WORD_BYTES),
            born_ns=value(view.born_ns),
            read_ns=self.now_ns,
            ended=ended or None,
            awaited=awaited if is_waiting else None,
            awaited_since_ns=self.time_ns(value(view.awaited_since)),
            calls=calls,
            phase=self.phase_names().get(value(view.phase), ""),
            copied=self,
        )

    def phase_names(self) -> dict[int, str]:
        """Return the names of phases by their numbers; empty for a program without phases."""
        named = value(self.view.named)
        if named == 0:
            return {}
        rows = {n: self.view.phases[n].name.address for n in range(1, named + 1)}
        names = {n: letters_at(at, journal.NAME_BYTES) for n, at in rows.items()}
        return {**names, OUTSIDE: OUTSIDE_ROW, IN_LIBRARY: OWN_ROW}

    def ticks_in_phase(self, number: int) -> int:
        """Return the ticks that the rank has been in a phase; a call under way does not count."""
        ticks = value(self.view.phases[number].ticks)
        if ticks >= 0:
            return ticks
        noted = self.view.calls[value(self.view.called) % journal.CALLS]
        is_inside = value(noted.number) > 0 and not value(noted.left) and not value(self.view.ended)
        return ticks + (value(noted.entered) if is_inside else self.ticks)

    def _calls(self) -> tuple[PastCall, ...]:
        # All words at once, because reading word by word takes too long: an error reads several
        # journals for each rank that it names.
        begin = JOURNAL.offsets["calls"] // WORD_BYTES
        words = self.words[begin : begin + journal.CALLS * _CALL_WORDS]
        rows = sorted(words.reshape(journal.CALLS, _CALL_WORDS).tolist())
        return tuple(self._past_call(row) for row in rows if row[0] > 0)

    def _past_call(self, words: list[int]) -> PastCall:
        row = dict(zip(NOTED_CALL.fields, words, strict=True))
        operation, dtype, argument = describe(row["signature"])
        return PastCall(
            number=row["number"],
            operation=operation,
            dtype=dtype,
            argument=argument,
            elements=row["count"],
            entered_ns=self.time_ns(row["entered"]),
            left_ns=self.time_ns(row["left"]) if row["left"] else None,
            own=own_call(row["signature"]),
        )


def value(address: int) -> int:
    """Load a word of a copy."""
    return int(peek_now(address))


def describe(signature: int) -> tuple[str, str, str]:
    """Return the operation, the dtype, and the root or ReduceOp of a signature, as words."""
    operation, code, argument = unpack_signature(signature)
    call = DATA_CALLS.get(signature & 0xFF)
    if call is None or operation == OPERATIONS[EXACT_SUM]:
        return operation, "", ""
    dtype = dtypes.NAMES.get(
        code, f"dtype #{signature >> HASH_SHIFT & HASH_MASK:06x}"
    )  # structured, text, time
    if "op" in call._fields:
        known = [op.name for op in ReduceOp if op == argument]
        return operation, dtype, known[0] if known else f"op {argument}"
    return operation, dtype, f"root={argument}" if "root" in call._fields else ""
