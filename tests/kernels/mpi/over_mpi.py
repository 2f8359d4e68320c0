"""What a leader does with MPI's requests and messages, and with counts of bytes."""

import ctypes

import pytest
from cobre_kernels.collective.comm import LEFT, PRESENT, UNREACHABLE
from cobre_kernels.collective.status import LOST_PEER, MPI_FAILED, OK
from cobre_kernels.mpi import calls
from cobre_kernels.mpi.records import MPI_MESSAGE
from cobre_kernels.mpi.verbs import RING_BYTES
from cobre_kernels.nodes.messages import ANSWER, GOODBYE, QUERY, REPORT
from cobre_kernels.nodes.protocol import COMMITTED, MOVING
from cobre_kernels.nodes.verbs import Cast, Gather, Scatter

from cobre_comm.backends.mpi import memory
from tests.kernels.mpi.library import OWN, Leader


def answer_each_query(mpi, monkeypatch, complete_after=None):
    """Let the other leader answer each query; return a list with an entry for each query.

    The leader's request is complete after ``complete_after`` answers, or never.
    """
    mpi.tests_left = 2**60
    queries = []

    def send(buffer, *arguments):
        if MPI_MESSAGE.at(buffer).kind == QUERY:
            queries.append(1)
            mpi.come(ANSWER)
            if len(queries) == complete_after:
                # the query itself has a request that MPI_Test has to find incomplete once
                mpi.tests_left = 1
        return 0

    monkeypatch.setattr(mpi, "send", send)
    return queries


def test_after_a_loss_no_exchange_begins(leader, mpi):
    mpi.come(GOODBYE)
    memory.VERBS.read.call(leader.comm.address)
    assert leader.exchange() == LOST_PEER
    assert leader.reasons() == [PRESENT, LEFT]
    assert not mpi.begun
    # in this state a leader begins an exchange, because others may have begun it
    leader.nodes.state = COMMITTED
    assert leader.exchange() == OK
    assert len(mpi.begun) == 1


DATA = {"allgatherv": Gather(0, 1), "broadcast": Cast(0, 8, OWN), "alltoallv": Scatter(0, 0)}


@pytest.mark.parametrize("verb", DATA)
def test_after_a_loss_no_data_begin_to_move(leader, mpi, verb):
    mpi.come(GOODBYE)
    memory.VERBS.read.call(leader.comm.address)
    leader.nodes.state = MOVING
    assert getattr(memory.VERBS, verb).call(leader.comm.address, *DATA[verb]) == LOST_PEER
    assert not mpi.begun


@pytest.mark.parametrize("beyond", [0, 1])
def test_parts_that_reach_farther_than_a_c_int(leader, mpi, beyond):
    begin, length = calls.LARGEST_INT - 5, 5 + beyond
    assert leader.gather([(0, 7), (begin, length)]) == OK
    [(name, arguments)] = mpi.begun
    assert name == ("MPI_Iallgatherv_c" if beyond else "MPI_Iallgatherv")
    word = ctypes.c_int64 if beyond else ctypes.c_int32
    counts, displacements = ((word * 2).from_address(arguments[at]) for at in (4, 5))
    assert (list(counts), list(displacements)) == ([7, length], [0, begin])


RING = [(0, 7), (7, RING_BYTES), (7 + RING_BYTES, 0)]


def test_large_blocks_go_around_the_ring(mpi):
    """The leader sends its own block, then the block that it has received, each from its place."""
    rank = Leader((0, 1, 2), rank=1)
    assert rank.gather(RING) == OK
    passed = [(name, arguments[:2], arguments[3]) for name, arguments in mpi.begun]
    assert passed == [
        ("MPI_Irecv", RING[0], 0), ("MPI_Isend", RING[1], 2),
        ("MPI_Irecv", RING[2], 0), ("MPI_Isend", RING[0], 2),
    ]  # fmt: skip


@pytest.mark.parametrize("failing", [1, 2, 3, 4])
def test_a_ring_ends_with_a_call_that_fails(mpi, failing):
    mpi.failing = failing
    assert Leader((0, 1, 2)).gather(RING) == MPI_FAILED
    assert len(mpi.begun) == failing


@pytest.mark.parametrize("leaders", [(0, 1), (0, 1, 2)])
def test_short_blocks_and_two_leaders_need_no_ring(mpi, leaders):
    longest = RING_BYTES if len(leaders) == 2 else RING_BYTES - 1
    assert Leader(leaders).gather([(0, longest)] * len(leaders)) == OK
    assert [name for name, _ in mpi.begun] == ["MPI_Iallgatherv"]


def test_a_network_that_carries_messages_but_no_exchange(leader, mpi, monkeypatch):
    answer_each_query(mpi, monkeypatch)
    leader.comm.timeout_ns = 1
    assert leader.exchange() == LOST_PEER
    assert leader.reasons() == [PRESENT, UNREACHABLE]


def test_data_that_go_on_moving_slowly(leader, mpi, monkeypatch):
    queries = answer_each_query(mpi, monkeypatch, complete_after=2)
    leader.nodes.state = MOVING
    leader.comm.timeout_ns = 1
    assert leader.gather([(0, 7), (7, 7)]) == OK
    assert len(queries) == 2


def test_a_message_that_cannot_be_received(leader, mpi):
    """The query before the lost message gets its answer; the next message is still read."""
    mpi.tests_left = 2**60
    for kind in (QUERY, QUERY, REPORT):
        mpi.come(kind, reasons=(PRESENT, LEFT))
    mpi.lost = mpi.inbox[1:2]
    assert leader.exchange() == LOST_PEER
    assert leader.reasons() == [PRESENT, LEFT]
    assert mpi.sent == [ANSWER]


def test_a_report_waits_until_it_is_sent(leader, mpi):
    mpi.tests_left = 3
    assert leader.report() == OK
    assert mpi.sent == [REPORT]
    assert mpi.tests_left == 0


def test_a_report_that_is_not_taken_is_left_to_itself(leader, mpi):
    mpi.tests_left = 2**60
    assert leader.report() == OK
    assert mpi.sent == [REPORT]
