"""Reports are read while they are written: a report is shown as it was noted, or not shown."""

import itertools
import math
import multiprocessing
import os
import sys
import threading

import numpy as np
import pytest
from cobre_kernels.collective.seeing.progress import REPORTS, SERIES_ROWS
from cobre_kernels.machine.record import peek_now, poke_now

from cobre_comm.journal import progress
from cobre_comm.journal.progress import Notes, Reports, read_reports, reports_of
from tests.forked import fork, outcome

NAMES = ("lower bound", "upper bound")


def numbers(report):
    """Return what the report with this number holds, in the order of NAMES."""
    return 1000.0 + report, -2000.5 - report


def add(notes, report):
    letters = [name.encode() for name in NAMES]
    notes.add(dict(zip(letters, numbers(report), strict=True)))


@pytest.mark.parametrize("count", [1, REPORTS - 1, REPORTS, REPORTS + 3])
def test_the_last_reports_are_read(count):
    notes = Notes()
    for report in range(1, count + 1):
        add(notes, report)
    read = read_reports(notes._memory)
    assert read.names == NAMES
    last = range(max(1, count - REPORTS + 1), count + 1)
    assert read.values == tuple(numbers(report) for report in last)
    assert list(read.times_ns) == sorted(read.times_ns)


def test_a_report_that_begins_is_shown_whole_or_not_at_all(monkeypatch):
    """Try all cases: some stores come before the copy, the rest between two loads of the copy."""
    notes, pending = Notes(), []
    for report in range(1, REPORTS + 1):
        add(notes, report)
    before = notes._memory.copy()
    monkeypatch.setattr(progress, "store", lambda *store: pending.append(store))
    add(notes, REPORTS + 1)
    stores = list(pending)
    row = notes._view.reports[(REPORTS + 1) % REPORTS].address

    def carry_out(count):
        for address, value in pending[:count]:
            poke_now(address, value)
        del pending[:count]

    for first, at in itertools.product(range(len(stores) + 1), range(11)):
        notes._memory[:] = before
        pending[:] = stores
        carry_out(first)
        loads = itertools.count()

        def load(address, at=at, loads=loads):
            if row <= address < row + 80 and next(loads) == at:
                carry_out(len(pending))  # between the loads of two words
            return peek_now(address)

        monkeypatch.setattr(progress, "load", load)
        values = read_reports(notes._memory).values
        whole = [numbers(report) for report in range(1, REPORTS + 2)]
        assert list(values) in (whole[:-1], whole[1:-1], whole[1:]), (first, at)


def test_a_name_that_comes_later_has_no_number_before():
    notes = Notes()
    notes.add({b"a": 1.0})
    notes.add({b"b": 2.0})
    read = read_reports(notes._memory)
    assert read.names == ("a", "b")
    assert read.values[0][0] == 1.0
    assert math.isnan(read.values[0][1])
    assert math.isnan(read.values[1][0])
    assert read.values[1][1] == 2.0


def test_the_first_names_have_a_place():
    notes = Notes()
    notes.add({f"{n}".encode(): float(n) for n in range(SERIES_ROWS + 2)})
    read = read_reports(notes._memory)
    assert read.names == tuple(map(str, range(SERIES_ROWS)))
    assert read.values == (tuple(map(float, range(SERIES_ROWS))),)


@pytest.mark.parametrize(
    ("payload", "noted"),
    [
        ({"int": 3, "float": 2.5, "numpy": np.float32(1.5), "count": np.int64(7)},
         {b"int": 3.0, b"float": 2.5, b"numpy": 1.5, b"count": 7.0}),
        ({"text": "3", "flag": True, "none": None, "array": np.ones(2), "huge": 10**400}, {}),
        ({3: 1.0, "": 1.0, " ": 1.0, "two\nlines": 1.0, "\x1b[2J": 1.0}, {}),
        ({"é" * 30: 1.0}, {("é" * 22).encode() + b"...": 1.0}),
        ("iteration 1", {}), (3.5, {}), (None, {}), ([("a", 1.0)], {}),
    ],
)  # fmt: skip
def test_of_a_mapping_numbers_with_a_name_are_noted(payload, noted):
    assert progress._numbers_in(payload) == noted


def test_reports_of_an_earlier_communicator_are_left_out():
    reports = Reports(("a",), (10, 20, 30), ((1.0,), (2.0,), (3.0,)))
    assert reports.since(20) == Reports(("a",), (20, 30), ((2.0,), (3.0,)))
    assert reports.since(31).values == ()


def _note_and_read(value, found):
    progress.note({"child": value})
    pid = os.getpid()
    found.send(reports_of(pid, pid))


@pytest.mark.skipif(sys.platform != "linux", reason="needs memfd_create and /proc")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_process_that_is_forked_off_has_reports_of_its_own():
    progress.note({"parent": 1.0})
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_note_and_read, args=(2.0, theirs))
    child.start()
    of_child = ours.recv()
    child.join()
    assert (of_child.names, of_child.values) == (("child",), ((2.0,),))
    mine = reports_of(os.getpid(), os.getpid())
    assert mine.names[-1] == "parent"
    assert mine.values[-1][-1] == 1.0


def test_a_process_that_is_forked_off_during_a_report_can_report():
    """Another thread, which is not in the child, holds the lock at the fork because it reports."""
    progress.note({"parent": 1.0})
    held, ends = threading.Event(), threading.Event()

    def report():
        with progress._notes[os.getpid()]._lock:
            held.set()
            ends.wait()

    thread = threading.Thread(target=report)
    thread.start()
    held.wait()
    try:
        assert outcome(*fork(progress.note, {"x": 1}), within_s=5) is None
    finally:
        ends.set()
        thread.join()
