"""What a leader does with messages of others, or without them: which ranks it names and asks."""

import numpy as np
import pytest
from cobre_kernels.collective.calls import BodyStatus
from cobre_kernels.collective.comm import DIED, FORKED, GAVE_UP, LATE, LEFT, PRESENT
from cobre_kernels.collective.status import (
    DISAGREE,
    IS_FORKED,
    LOST_PEER,
    OK,
    TIMED_OUT,
    UNSEEN,
)
from cobre_kernels.machine.record import poke_now
from cobre_kernels.nodes.failing import abandon_body
from cobre_kernels.nodes.messages import ANSWER, GOODBYE, REPORT, goodbye_kernel
from cobre_kernels.nodes.protocol import ENDED, PREPARED
from numba import config

from tests.kernels.mpi.library import Leader

FOR_EVER = 2**60


def exchange_after(mpi, leader, *messages):
    """Exchange, and let only these reports arrive; return the status.

    A report is its sender, the number of verbs that the sender has completed, and its reasons.
    """
    mpi.tests_left = FOR_EVER
    for sender, number, *reasons in messages:
        mpi.come(REPORT, number, reasons, sender)
    return leader.exchange()


# Tests of failure reports.


def test_who_has_reported_says_no_goodbye(leader, mpi):
    leader.report()
    goodbye_kernel.call(leader.comm.address)
    leader.report()
    assert mpi.sent == [REPORT]


def test_a_late_rank_that_reports_is_no_witness(mpi):
    """Rank 1 reports that rank 2 is late, so rank 2's report that rank 1 gave up is ignored."""
    leader = Leader(range(3))
    given_up = (PRESENT, PRESENT, LATE)
    assert exchange_after(mpi, leader, (1, 0, *given_up), (2, 0, 0, GAVE_UP, 0)) == TIMED_OUT
    assert tuple(leader.reasons()) == given_up


def test_to_a_late_rank_the_one_that_reports_is_missing(mpi):
    leader = Leader(range(3))
    assert exchange_after(mpi, leader, (2, 0, LATE, PRESENT, PRESENT)) == LOST_PEER
    assert leader.reasons() == [PRESENT, PRESENT, GAVE_UP]


@pytest.mark.parametrize("order", [1, -1])
def test_the_report_of_whoever_has_completed_least_is_adopted(mpi, order):
    leader = Leader(range(4))
    reports = [(1, 5, 0, 0, 0, DIED), (2, 0, 0, 0, 0, DIED)][::order]
    assert exchange_after(mpi, leader, *reports) == LOST_PEER
    assert leader.reasons() == [PRESENT, PRESENT, PRESENT, DIED]
    assert (leader.nodes.reported, leader.nodes.reporter) == (0, 2)


@pytest.mark.parametrize("order", [1, -1])
def test_a_rank_that_died_is_not_late(mpi, order):
    leader = Leader(range(4))
    reports = [(1, 0, 0, 0, 0, DIED), (2, 0, 0, 0, 0, LATE)][::order]
    assert exchange_after(mpi, leader, *reports) == LOST_PEER
    assert leader.reasons() == [PRESENT, PRESENT, PRESENT, DIED]


@pytest.mark.parametrize(
    ("rank", "leader_is", "status", "told"),
    [
        (0, PRESENT, UNSEEN, [REPORT]),
        (0, PRESENT, DISAGREE, [GOODBYE]),
        (0, PRESENT, LOST_PEER, []),  # the round has reported the loss
        (1, PRESENT, UNSEEN, []),  # the leader of this rank reports
        (1, DIED, UNSEEN, [REPORT]),
        (1, PRESENT, DISAGREE, []),
    ],
)
def test_what_a_rank_tells_whose_collective_has_failed(mpi, rank, leader_is, status, told):
    leader = Leader([0, 0, 2], rank)
    leader.comm.failures[0].reason = leader_is
    assert abandon_body.call(leader.comm.address, *BodyStatus(status)) == OK
    assert mpi.sent == told


# Tests of waits.


def test_a_child_of_a_signal_handler_leaves_the_exchange(leader, mpi):
    mpi.tests_left = FOR_EVER
    poke_now(leader.comm.guard, FORKED)
    assert leader.exchange() == IS_FORKED
    assert leader.nodes.state == ENDED


def test_who_is_prepared_hears_no_signal(leader, mpi, monkeypatch):
    poke_now(leader.comm.guard, FORKED)
    leader.nodes.state = PREPARED
    match, looks = mpi.match, []

    def look(*arguments):
        """Complete the request as soon as the leader polls."""
        looks.append(1)
        mpi.tests_left = 0
        return match(*arguments)

    mpi.tests_left = FOR_EVER
    monkeypatch.setattr(mpi, "match", look)
    assert leader.exchange() == OK
    assert looks


def answer(mpi, monkeypatch, answering):
    """Let some leaders answer each query; return the list of the leaders that were asked."""
    asked = []

    def send(buffer, count, byte, rank, *arguments):
        asked.append(rank)
        if rank in answering:
            mpi.come(ANSWER, sender=rank)
        return 0

    mpi.tests_left = FOR_EVER
    monkeypatch.setattr(mpi, "send", send)
    return asked


@pytest.mark.parametrize(
    ("answering", "marks"), [((1,), [0, 0, -1, 0]), ((2,), [0, 1, 0, 0]), ((1, 2), None)]
)
def test_a_line_tells_of_the_leaders_that_do_not_answer(mpi, monkeypatch, answering, marks):
    """A node of several ranks has a negative mark: its late rank may be one of its followers."""
    leader, lines = Leader([0, 1, 2, 2]), []
    asked = answer(mpi, monkeypatch, answering)
    late = np.array([5, 5, 5, 0])

    def tell():
        lines.append(np.sign(late).tolist())
        mpi.come(GOODBYE, sender=1)

    leader.comm.late, leader.comm.late_ns = late.ctypes.data, 1
    leader.comm.write_late_line = id(tell)
    if config.DISABLE_JIT:
        monkeypatch.setattr("cobre_kernels.machine.libc.call_object", lambda *_: tell() or 0)
    if marks is None:
        asked_until(mpi, monkeypatch, asked, 4)
    assert leader.exchange() == LOST_PEER
    assert leader.reasons() == [PRESENT, LEFT, PRESENT, PRESENT]
    assert lines == ([] if marks is None else [marks])


def asked_until(mpi, monkeypatch, asked, count):
    """Let leader 1 say goodbye when ``count`` queries have been sent."""
    match = mpi.match

    def look(*arguments):
        if len(asked) >= count:
            mpi.come(GOODBYE)
            asked.clear()
        return match(*arguments)

    monkeypatch.setattr(mpi, "match", look)


def test_the_leader_that_does_not_answer_is_late(mpi, monkeypatch):
    leader = Leader(range(3))
    asked = answer(mpi, monkeypatch, (1,))
    leader.comm.timeout_ns = 1
    assert leader.exchange() == TIMED_OUT
    assert leader.reasons() == [PRESENT, PRESENT, LATE]
    assert asked == [1, 2]
    assert leader.nodes.state == ENDED
