"""A leader over MPI, where the test plays the library: it answers as a real one seldom does.

    python -m tests.kernels.mpi_leader

runs them, in a process that has no other MPI.
"""

import ctypes
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from cobre_kernels.collective.calls import Outcome
from cobre_kernels.collective.comm import COMM, LEFT, PRESENT, UNREACHABLE
from cobre_kernels.collective.status import LOST_PEER, OK
from cobre_kernels.machine.record import WORD_BYTES
from cobre_kernels.mpi import calls
from cobre_kernels.mpi.control import HEAD_BYTES
from cobre_kernels.mpi.records import MPI_MESSAGE, message_bytes
from cobre_kernels.nodes import round
from cobre_kernels.nodes.messages import ANSWER, GOODBYE, QUERY, REPORT, report_kernel
from cobre_kernels.nodes.protocol import COMMITTED, ENTERED, MOVING
from cobre_kernels.nodes.records import STAGING
from cobre_kernels.nodes.verbs import Exchange, Gather

from cobre_comm.backends.comm_memory import comm_words
from cobre_comm.backends.journals import Journals
from cobre_comm.backends.mpi import library, memory
from cobre_comm.backends.nodes.node_order import node_order_of

OWN, OTHER = 0, 1
HANDLE_BYTES = 8
WIDTHS = {"p": 8, "n": 8, "i": 4, "h": HANDLE_BYTES}
MPI_ERROR = 17


class Library:
    """The MPI of one test: the requests that have begun, and messages of the other leader."""

    def __init__(self):
        self.begun, self.sent, self.inbox = [], [], []
        self.tests_left = 0  # before a request is complete
        self.lost = []  # messages that cannot be received

    def begin(self, name, arguments):
        self.begun.append((name, arguments))
        return 0

    def test(self, request, flag, status):
        ctypes.c_int32.from_address(flag).value = self.tests_left == 0
        self.tests_left = max(self.tests_left - 1, 0)
        return 0

    def match(self, source, tag, comm, flag, message, status):
        ctypes.c_int32.from_address(flag).value = bool(self.inbox)
        return 0

    def receive(self, buffer, count, byte, message, status):
        words = self.inbox.pop(0)
        if any(words is each for each in self.lost):
            return MPI_ERROR
        ctypes.memmove(buffer, words.ctypes.data, words.nbytes)
        return 0

    def send(self, buffer, count, byte, rank, tag, comm, request):
        self.sent.append(MPI_MESSAGE.at(buffer).kind)
        return 0

    def come(self, kind, number=0, reasons=()):
        """Let a message of the other leader come."""
        words = np.zeros(message_bytes(2) // WORD_BYTES, np.int64)
        message = MPI_MESSAGE.of(words)
        message.kind, message.sender, message.number = kind, OTHER, number
        words[HEAD_BYTES // WORD_BYTES :][: len(reasons)] = reasons
        self.inbox.append(words)


FUNCTIONS = {
    "MPI_Test": "test", "MPI_Improbe": "match", "MPI_Mrecv": "receive", "MPI_Isend": "send",
}  # fmt: skip
current = [Library()]


def _does(name):
    def does(*arguments):
        if name in FUNCTIONS:
            return getattr(current[0], FUNCTIONS[name])(*arguments)
        return current[0].begin(name, arguments)

    kinds = [ctypes.c_int32 if WIDTHS[x] == 4 else ctypes.c_int64 for x in calls.SIGNATURES[name]]
    return ctypes.CFUNCTYPE(ctypes.c_int32, *kinds)(does)


CALLBACKS = {name: _does(name) for name in calls.SIGNATURES}
calls.make_known({n: ctypes.cast(f, ctypes.c_void_p).value for n, f in CALLBACKS.items()})
library.has_large_counts = lambda: True


class Memory(memory.MpiMemory):
    def _describe_library(self, owned):
        self._mpi.handle_bytes = HANDLE_BYTES
        self._mpi.status = self.room(64)


class Leader:
    """Rank 0 of two, each alone on its node."""

    def __init__(self):
        self.words = comm_words(2)
        self.comm = comm = COMM.of(self.words)
        comm.rank, comm.size = OWN, 2
        owned = SimpleNamespace(world=SimpleNamespace(rank=OWN, size=2))
        self.memory = Memory(comm, self.words, owned, node_order_of([0, 1], OWN))
        self.nodes = comm.nodes = self.memory.nodes
        self.nodes.staging = self.memory.record(STAGING, 2)
        self.nodes.state = ENTERED
        self.journals = Journals(comm)

    def exchange(self):
        call = Exchange(round.LEADER_HEADER_BYTES, 0, 0)
        return memory.VERBS.exchange.call(self.comm.address, call)

    def gather(self, parts):
        """Gather parts, each its displacement and length."""
        for node, (begin, length) in enumerate(parts):
            self.nodes.block_at[node], self.nodes.block_bytes[node] = begin, length
        return memory.VERBS.allgatherv.call(self.comm.address, Gather(0))

    def report(self):
        return report_kernel.call(self.comm.address, Outcome(LOST_PEER))

    def reasons(self):
        return [self.comm.failures[rank].reason for rank in range(2)]


@pytest.fixture
def mpi():
    current[0] = Library()
    return current[0]


@pytest.fixture
def leader(mpi):
    return Leader()


def answer_each_query(mpi, monkeypatch, complete_after=None):
    """Let the other leader answer each query, and complete the request after so many of them."""
    mpi.tests_left = 2**60
    queries = []

    def send(buffer, *arguments):
        if MPI_MESSAGE.at(buffer).kind == QUERY:
            queries.append(1)
            mpi.come(ANSWER)
            if len(queries) == complete_after:
                mpi.tests_left = 1  # that of the query itself
        return 0

    monkeypatch.setattr(mpi, "send", send)
    return queries


def test_after_a_loss_no_exchange_begins(leader, mpi):
    mpi.come(GOODBYE)
    memory.VERBS.read.call(leader.comm.address)
    assert leader.exchange() == LOST_PEER
    assert leader.reasons() == [PRESENT, LEFT]
    assert not mpi.begun
    leader.nodes.state = COMMITTED  # which begins what others may have begun
    assert leader.exchange() == OK
    assert len(mpi.begun) == 1


@pytest.mark.parametrize("beyond", [0, 1])
def test_parts_that_reach_farther_than_a_c_int(leader, mpi, beyond):
    begin, length = calls.LARGEST_INT - 5, 5 + beyond
    assert leader.gather([(0, 7), (begin, length)]) == OK
    [(name, arguments)] = mpi.begun
    assert name == ("MPI_Iallgatherv_c" if beyond else "MPI_Iallgatherv")
    word = ctypes.c_int64 if beyond else ctypes.c_int32
    counts, displacements = ((word * 2).from_address(arguments[at]) for at in (4, 5))
    assert (list(counts), list(displacements)) == ([7, length], [0, begin])


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
    """The query before it is answered only once; the wait goes on, and takes the next message."""
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


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", __file__]))
