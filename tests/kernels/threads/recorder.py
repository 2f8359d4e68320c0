"""The kernels as plain Python, on threads, with every access to memory noted.

Only under NUMBA_DISABLE_JIT=1, and before anything else imports the kernels: this file replaces
the functions of ``atomics.py``, from which all others take theirs.
"""

import ctypes
import threading
from collections import defaultdict

import numpy as np
from cobre_kernels.machine import atomics, record
from numba import config

from tests.kernels.threads.races import Races

assert config.DISABLE_JIT, "run with NUMBA_DISABLE_JIT=1"

TIMEOUT_S = 20.0
ITEMSIZE = 8  # of elements; the scenarios use no other


class Recorder:
    """What happened: races, the operations on each shared word, and who wrote it."""

    def __init__(self):
        self.compares = True  # whether data that arrives is looked at
        self.lock = threading.RLock()
        self.ranks = threading.local()
        self.watch(1, 0, 0, 0)

    def watch(self, size, begin, end, buffers):
        """Begin anew, for a segment; its collective buffers begin at ``buffers``."""
        self.races = Races(size, begin, end)
        self.begin, self.buffers = begin, buffers
        self.staging = None
        self.operations = set()
        self.writers = defaultdict(set)

    def word(self, address):
        """Return the name of a shared word, "data", or None for memory that is not watched."""
        if not self.races.is_shared(address):
            return None
        if self.staging is not None and address >= self.staging:
            return shared_words.name_at("Staging", address - self.staging)
        if address >= self.buffers:
            return "data"
        return shared_words.name_at("Control", address - self.begin)

    def note(self, what, how, address):
        """Note an operation on a word of another process."""
        word = self.word(address)
        if word is not None:
            self.operations.add((word, what, how))
            if what != "load":
                self.writers[word, address - self.begin].add(self.ranks.own)

    def data(self, what, how, address, count):
        """Note a plain access to so many bytes, and every word of them that is not data."""
        for word in range(address, min(address + count, self.buffers), record.WORD_BYTES):
            self.note(what, how, word)
        self.races.data(self.ranks.own, address, count, what == "store")


recorder = Recorder()


def _load(ordering):
    def load(address):
        with recorder.lock:
            if recorder.races.is_shared(address):
                recorder.note("load", ordering, address)
                recorder.races.load(recorder.ranks.own, address, ordering)
            return look(address)

    return load


def _store(ordering):
    def store(address, value):
        with recorder.lock:
            recorder.note("store", ordering, address)
            recorder.races.store(recorder.ranks.own, address, ordering)
            _write(address, value)

    return store


def look(address):
    """Load a word that is not watched."""
    return ctypes.c_int64.from_address(address).value


def _write(address, value):
    ctypes.c_int64.from_address(address).value = value


def peek(address):
    with recorder.lock:
        recorder.data("load", "plain", address, record.WORD_BYTES)
        return look(address)


def poke(address, value):
    with recorder.lock:
        recorder.data("store", "plain", address, record.WORD_BYTES)
        _write(address, value)


def fetch_add(address, value):
    with recorder.lock:
        recorder.note("atomicrmw", "add seq_cst", address)
        recorder.races.exchange(recorder.ranks.own, address)
        before = look(address)
        _write(address, before + value)
        return before


def compare_exchange(address, expected, desired):
    with recorder.lock:
        recorder.note("cmpxchg", "acq_rel acquire", address)
        recorder.races.exchange(recorder.ranks.own, address)
        before = look(address)
        if before == expected:
            _write(address, desired)
        return before


def copy_bytes(destination, source, count):
    with recorder.lock:
        recorder.data("load", "copy", source, count)
        recorder.data("store", "copy", destination, count)
        ctypes.memmove(destination, source, count)


def copy_blocks(destination, source, blocks):
    copy_bytes(destination, source, blocks * atomics.COPY_BLOCK_BYTES)


def stream_blocks(destination, source, blocks):
    copy_blocks(destination, source, blocks)
    if blocks > 0:
        recorder.races.streams(recorder.ranks.own, destination)


def fence_seq_cst():
    recorder.races.fence(recorder.ranks.own)


REPLACED = {
    "peek": peek,
    "poke": poke,
    "load_relaxed": _load("monotonic"),
    "load_acquire": _load("acquire"),
    "load_seq_cst": _load("seq_cst"),
    "store_relaxed": _store("monotonic"),
    "store_release": _store("release"),
    "store_seq_cst": _store("seq_cst"),
    "fetch_add": fetch_add,
    "compare_exchange": compare_exchange,
    "copy_bytes": copy_bytes,
    "copy_blocks": copy_blocks,
    "stream_blocks": stream_blocks,
    "fence_seq_cst": fence_seq_cst,
}
for _name, _function in REPLACED.items():
    setattr(atomics, _name, _function)

# What View and Table use.
record.peek_now, record.poke_now = peek, poke

# After the replacement.
from cobre_kernels.collective.comm import COMM  # noqa: E402
from cobre_kernels.collective.fold import Fold, fold_kernel  # noqa: E402
from cobre_kernels.machine.kernel import kernel  # noqa: E402
from cobre_kernels.shm import allgatherv, allreduce, barrier, broadcast, control, step  # noqa: E402

from tests.kernels import shared_words  # noqa: E402


@kernel(COMM, Fold)
def recorded_fold(comm, call):
    size_bytes = call.count * ITEMSIZE
    with recorder.lock:
        recorder.data("load", "plain", call.x, size_bytes)
        recorder.data("load", "plain", call.acc, size_bytes)
        recorder.data("store", "plain", call.acc, size_bytes)
        return fold_kernel.function(comm, call)


def compare(found, expected):
    """Check what a collective gave, unless something wrong is planted in it."""
    if recorder.compares:
        np.testing.assert_array_equal(found, expected)


class World:
    """Ranks on threads of this process, over memory laid out as a segment."""

    def __init__(self, size, buffer_bytes=12288, timeout_s=TIMEOUT_S):
        self.size = size
        offset = control.buffers_offset(size)
        self.memory = np.zeros((offset + size * buffer_bytes + 4096) // 8, dtype=np.int64)
        begin = -(-self.memory.ctypes.data // 4096) * 4096
        recorder.watch(size, begin, begin + offset + size * buffer_bytes, begin + offset)
        self.words = [COMM.array(size) for _ in range(size)]
        self.comms = [COMM.of(words) for words in self.words]
        for rank, comm in enumerate(self.comms):
            recorder.ranks.own = rank
            comm.rank, comm.size = rank, size
            comm.control, comm.buffers, comm.buffer_stride = begin, begin + offset, buffer_bytes
            comm.chunk_bytes = control.chunk_bytes(buffer_bytes)
            comm.timeout_ns = int(timeout_s * 1e9)
            comm.fills_to_stream = rank
            comm.fold_kernel = recorded_fold.address
            comm.barrier_body = barrier.barrier_body.address
            comm.broadcast_body = broadcast.broadcast_body.address
            comm.allreduce_body = allreduce.allreduce_body.address
            comm.allgatherv_body = allgatherv.allgatherv_body.address
            comm.abandon_body = step.abandon_body.address

    def run(self, body):
        """Run ``body(comm)`` on a thread for each rank."""
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
