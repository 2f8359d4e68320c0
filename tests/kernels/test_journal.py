"""A journal is read while it is written: a call is shown as it was noted, or not shown."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
from cobre_kernels.collective.comm import COMM
from cobre_kernels.collective.seeing import journal
from cobre_kernels.collective.seeing.journal import (
    CALLS,
    JOURNAL,
    RAISED_ROWS,
    RAISED_WORDS,
    Copy,
    Raised,
)
from cobre_kernels.machine.record import peek_now, poke_now

WORDS = ("number", "signature", "count", "size_bytes", "entered")
LAST = 3 * CALLS // 2


class Rank:
    """A rank that keeps its stores back until the test carries them out."""

    def __init__(self):
        self.words, self.pending = JOURNAL.array(), []
        self.comm_words = COMM.array(1)
        self.comm, self.journal = COMM.of(self.comm_words), JOURNAL.of(self.words)
        self.comm.journal = self.words.ctypes.data

    def enter(self, number):
        self.comm.signature, self.comm.count = 10_000 + number, 20_000 + number
        self.number = number
        self.comm.size_bytes = 30_000 + number
        journal.note_entered.py_func(self.comm)

    def ticks(self):
        return 40_000 + self.number

    def carry_out(self, count):
        for address, value in self.pending[:count]:
            poke_now(address, value)
        del self.pending[:count]


@pytest.fixture
def rank(monkeypatch):
    found = Rank()
    replaced = {
        "store_release": lambda address, value: found.pending.append((address, value)),
        "load_relaxed": peek_now,
        "load_acquire": peek_now,
        "poke": poke_now,
        "ticks": found.ticks,
        "libc": SimpleNamespace(monotonic_ns=time.monotonic_ns),
        "noted_call": journal.noted_call.py_func,
    }
    for name, function in replaced.items():
        monkeypatch.setattr(journal, name, function)
    for number in range(1, LAST + 1):
        found.enter(number)
        found.carry_out(len(found.pending))
    return found


def shown(rank):
    """Copy the journal; return the values of WORDS for each call in it, by the call's number."""
    words, now = JOURNAL.array(), np.zeros(2, dtype=np.int64)
    copy = Copy(words.ctypes.data, now.ctypes.data)
    journal.copy_journal_kernel.function(rank.journal, copy)
    rows = [JOURNAL.of(words).calls[row] for row in range(CALLS)]
    values = [[peek_now(getattr(row, name)) for name in WORDS] for row in rows]
    return {value[0]: value for value in values if value[0]}


def noted(numbers):
    return {n: [n, *(base + n for base in (10_000, 20_000, 30_000, 40_000))] for n in numbers}


def test_the_last_calls_are_shown(rank):
    assert shown(rank) == noted(range(LAST - CALLS + 1, LAST + 1))


def test_a_call_that_begins_is_shown_whole_or_not_at_all(rank, monkeypatch):
    """Try all cases: some stores come before the copy, the rest between two loads of the copy."""
    rank.enter(LAST + 1)
    stores, before = list(rank.pending), rank.words.copy()
    older = range(LAST - CALLS + 2, LAST + 1)
    row = rank.journal.calls[(LAST + 1) % CALLS].address
    for first in range(len(stores) + 1):
        for load in range(10):
            rank.words[:] = before
            rank.pending = list(stores)
            rank.carry_out(first)
            loads = iter(range(10**6))

            def load_acquire(address, at=load, loads=loads):
                if row <= address < row + 64 and next(loads) == at:
                    rank.carry_out(len(rank.pending))  # between the loads of two words
                return peek_now(address)

            monkeypatch.setattr(journal, "load_acquire", load_acquire)
            found = shown(rank)
            assert found.items() >= noted(older).items()
            others = {n: value for n, value in found.items() if n not in older}
            assert others in ({}, noted([LAST - CALLS + 1]), noted([LAST + 1])), (first, load)


def test_an_exception_is_noted_once_and_where_a_row_is_free():
    words = JOURNAL.array()
    for number, rank in enumerate((2, 0, 2, 1, 0, 3, 4)):
        told = np.full(RAISED_WORDS, number)
        journal.note_raised_kernel.call(words.ctypes.data, *Raised(rank, told.ctypes.data))
    rows = [JOURNAL.of(words).raised[row] for row in range(RAISED_ROWS)]
    assert [peek_now(row.rank) - 1 for row in rows] == [2, 0, 1, 3]
    assert [peek_now(row.words[RAISED_WORDS - 1].value) for row in rows] == [0, 1, 3, 5]
