"""A leader over an MPI that the test imitates; this MPI reports what a real MPI rarely reports."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest
from cobre_kernels.collective.calls import BodyStatus
from cobre_kernels.collective.comm import COMM, RANKS
from cobre_kernels.collective.status import LOST_PEER
from cobre_kernels.machine.record import WORD_BYTES, poke_now
from cobre_kernels.mpi import calls
from cobre_kernels.mpi.control import HEAD_BYTES, TAG
from cobre_kernels.mpi.records import MPI, MPI_MESSAGE, message_bytes
from cobre_kernels.nodes import round
from cobre_kernels.nodes.messages import report_kernel
from cobre_kernels.nodes.protocol import ENTERED
from cobre_kernels.nodes.records import STAGING
from cobre_kernels.nodes.verbs import Exchange, Gather
from cobre_kernels.shm import wait
from cobre_kernels.shm.control import CONTROL

from cobre_comm.backends.comm_memory import comm_words, describe_pace
from cobre_comm.backends.journals import Journals
from cobre_comm.backends.mpi import library, memory
from cobre_comm.backends.nodes.node_order import node_order_of

OWN, OTHER = 0, 1
HANDLE_BYTES = 8
WIDTHS = {"p": 8, "n": 8, "i": 4, "h": HANDLE_BYTES}
MPI_ERROR = 17
NO_FILE = -1  # no file of locks: all locks count as held, so no rank has died


class Library:
    """The MPI of one test: what the leader has begun and sent, and the messages for the leader."""

    def __init__(self):
        self.begun, self.sent, self.inbox = [], [], []
        self.failing = 0  # which of the calls that begin something fails; 0: no call fails
        self.tests_left = 0  # how many calls of MPI_Test find a request still incomplete
        self.lost = []  # messages of which the receive fails

    def begin(self, name, arguments):
        self.begun.append((name, arguments))
        if name == "MPI_Iallgather":  # the other leader gives the same bytes as this leader
            send, count, _, recv = arguments[:4]
            for node in range(2):
                ctypes.memmove(recv + node * count, send, count)
        return MPI_ERROR if len(self.begun) == self.failing else 0

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

    def send(self, *arguments):
        buffer, *_, tag, _, _ = arguments
        if tag != TAG:
            return self.begin("MPI_Isend", arguments)
        self.sent.append(MPI_MESSAGE.at(buffer).kind)
        return 0

    def come(self, kind, number=0, reasons=(), sender=OTHER):
        """Let a message of another leader arrive."""
        words = np.zeros(message_bytes(2) // WORD_BYTES, np.int64)
        message = MPI_MESSAGE.of(words)
        message.kind, message.sender, message.number = kind, sender, number
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
ADDRESSES = np.array([ctypes.cast(CALLBACKS[n], ctypes.c_void_p).value for n in calls.SIGNATURES])
library.has_large_counts = lambda: True


class Memory(memory.MpiMemory):
    def _describe_library(self, owned):
        self._mpi.handle_bytes = HANDLE_BYTES
        poke_now(self._mpi.address + MPI.offsets["functions"], ADDRESSES.ctypes.data)
        self._mpi.status = self.room(64)


class Leader:
    """A rank of a job of several nodes; the test imitates all other ranks.

    ``leaders`` has the leader of each rank.
    """

    def __init__(self, leaders=(OWN, OTHER), rank=OWN):
        size = len(leaders)
        self.words = comm_words(size)
        self.comm = comm = COMM.of(self.words)
        comm.rank, comm.size = rank, size
        self.journals = Journals(comm)
        owned = SimpleNamespace(world=SimpleNamespace(rank=rank, size=size))
        self.memory = Memory(comm, self.words, owned, node_order_of(leaders, rank))
        self.nodes = comm.nodes = self.memory.nodes
        self.memory.stage_at(self.memory.record(STAGING, size).address)
        self.nodes.state = ENTERED
        self.node = node = comm.node
        here = [other for other in range(size) if leaders[other] == leaders[rank]]
        node.rank, node.size = here.index(rank), len(here)
        self.control = CONTROL.array(node.size)
        node.control, node.liveness_fd = self.control.ctypes.data, NO_FILE
        describe_pace(comm, RANKS, wait.block_kernel, wait.look_around_kernel)

    def exchange(self):
        call = Exchange(round.LEADER_HEADER_BYTES, 0, 0)
        return memory.VERBS.exchange.call(self.comm.address, *call)

    def gather(self, parts):
        """Gather parts, each given by its displacement and length."""
        for node, (begin, length) in enumerate(parts):
            self.nodes.block_at[node], self.nodes.block_bytes[node] = begin, length
        return memory.VERBS.allgatherv.call(self.comm.address, *Gather(0, 1))

    def report(self):
        return report_kernel.call(self.comm.address, *BodyStatus(LOST_PEER))

    def reasons(self):
        return [self.comm.failures[rank].reason for rank in range(self.comm.size)]


@pytest.fixture
def mpi():
    current[0] = Library()
    return current[0]


@pytest.fixture
def leader(mpi):
    return Leader()
