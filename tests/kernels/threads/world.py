"""Ranks on threads of one process, with memory that is laid out like a segment."""

import ctypes
import os
import threading

import numpy as np

from tests.kernels.threads import recorder as recording  # first, because it replaces the atomics
from tests.kernels.threads.recorder import recorder

from cobre_kernels.collective import guard  # isort: skip
from cobre_kernels.collective.seeing import journal  # isort: skip
from cobre_kernels.collective.comm import COMM, IDLE, RANKS  # isort: skip
from cobre_kernels.collective.reduction.fold import Fold, fold_kernel  # isort: skip
from cobre_kernels.collective.stop import STOP_FLAG  # isort: skip
from cobre_kernels.machine.kernel import kernel  # isort: skip
from cobre_kernels.machine.record import poke_now  # isort: skip
from cobre_kernels.shm import control, wait, ways  # isort: skip
from cobre_comm.backends.comm_memory import describe_pace  # isort: skip
from cobre_comm.backends.journals import Journals  # isort: skip
from cobre_comm.backends.region_table import RegionTable  # isort: skip
from cobre_comm.backends.shm.backend import BODIES as NODE_BODIES  # isort: skip
from tests.kernels import shared_words  # isort: skip

# Journals are not watched: they publish no data, so streamed stores need no fence before a
# journal's stores.
journal.store_release = recording.write

TIMEOUT_S = 20.0
REGION_BYTES = 2**17
PRIVATE_BYTES = 2**17  # of each rank, outside regions; watched, because other ranks reach them
CAST_SLOTS = 2  # slots that a step of a broadcast fills


@kernel(COMM, Fold)
def recorded_fold(comm, call):
    with recorder.lock:
        recorder.data("load", "plain", call.x, call.size_bytes)
        recorder.data("load", "plain", call.acc, call.size_bytes)
        recorder.data("store", "plain", call.acc, call.size_bytes)
        return fold_kernel.function(comm, call)


def give_bodies(comm, bodies):
    bodies.give_to(comm)


class World:
    """The ranks of a communicator over shared memory."""

    def __init__(self, size, buffer_bytes=12288, timeout_s=TIMEOUT_S):
        self.size = size
        offset = control.buffers_offset(size)
        regions_offset = offset + size * buffer_bytes
        private_offset = regions_offset + 2 * REGION_BYTES
        nbytes = private_offset + size * PRIVATE_BYTES
        self.memory = np.zeros((nbytes + control.PAGE_BYTES) // 8, dtype=np.int64)
        begin = -(-self.memory.ctypes.data // control.PAGE_BYTES) * control.PAGE_BYTES
        self.begin, self.buffers = begin, begin + offset
        self.private_offset = private_offset
        recorder.watch(size, range(begin, begin + nbytes), self.buffers, self.name_of)
        self.regions = RegionTable()
        recorder.ranks.own = 0
        for number in (1, 2):
            at = begin + regions_offset + (number - 1) * REGION_BYTES
            self.regions.add(number, at, REGION_BYTES)
        self.flag = STOP_FLAG.array()
        self.words = [COMM.array(size) for _ in range(size)]
        self.sends = [np.zeros(size, dtype=np.int64) for _ in range(size)]
        self.comms = [COMM.of(words) for words in self.words]
        self.late = np.zeros(size, dtype=np.int64)  # nobody reads these numbers
        self.journals = []
        for rank, comm in enumerate(self.comms):
            recorder.ranks.own = rank
            poke_now(comm.guard, IDLE)
            comm.rank, comm.size = rank, size
            self.journals.append(Journals(comm))
            node = comm.node
            node.rank, node.size = rank, size
            node.control, node.buffers, node.buffer_stride = begin, self.buffers, buffer_bytes
            node.chunk_bytes = control.chunk_bytes(buffer_bytes)
            node.cast_bytes = node.chunk_bytes * (CAST_SLOTS if size > CAST_SLOTS else 1)
            node.reading.own.pid, node.reading.own.token = os.getpid(), 1 + rank
            node.forced_way = ways.FASTEST
            comm.timeout_ns = int(timeout_s * 1e9)
            describe_pace(comm, RANKS, wait.block_kernel, wait.look_around_kernel)
            # at each poll, late ranks are reported
            comm.late_ns, comm.late = 1, self.late.ctypes.data
            node.slot_fills.to_stream = node.region_fills.to_stream = rank
            comm.regions = self.regions.address
            comm.stop = STOP_FLAG.of(self.flag).address
            comm.fold_kernel = recorded_fold.address
            comm.sends = self.sends[rank].ctypes.data
            give_bodies(comm, NODE_BODIES)
            comm.fail = guard.fail_kernel.address

    def name_of(self, address):
        """Return the name of the shared word at an address, or "data"."""
        if address >= self.buffers:
            return "data"
        return shared_words.name_at("Control", address - self.begin)

    def private(self, rank):
        """Return the private memory of a rank, which lies outside regions."""
        begin = self.begin + self.private_offset + rank * PRIVATE_BYTES
        words = (ctypes.c_double * (PRIVATE_BYTES // 8)).from_address(begin)
        return np.frombuffer(words, dtype=np.float64)

    def run(self, body):
        """Run ``body(comm)`` for each rank, on a thread of its own."""
        errors = []

        def work(rank):
            recorder.ranks.own = rank
            try:
                body(self.comms[rank])
            except AssertionError as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(r,), daemon=True) for r in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * TIMEOUT_S)
        if errors:
            raise errors[0]
        assert not any(thread.is_alive() for thread in threads), "a rank hangs"
