"""The kernels as plain Python, on threads, with every access to memory noted.

This file works only under NUMBA_DISABLE_JIT=1. It must be imported before all kernels, because it
replaces the functions of ``atomics.py``, which kernels import. So ``world.py`` imports it first.
"""

import ctypes
import threading
from collections import defaultdict

from cobre_kernels.machine import atomics, record
from numba import config

from tests.kernels.threads.races import Races

assert config.DISABLE_JIT, "run with NUMBA_DISABLE_JIT=1"


class Recorder:
    """The notes on a run: its races, the operations on each shared word, and who writes a word."""

    def __init__(self):
        self.lock = threading.RLock()
        self.ranks = threading.local()
        self.watch(1, range(0), 0, str)

    def watch(self, size, segment, buffers, name_of):
        """Begin new notes, for the addresses of a segment.

        The collective buffers of the segment begin at ``buffers``; ``name_of(address)`` names a
        shared word.
        """
        self.races = Races(size, segment.start, segment.stop)
        self.begin, self.buffers, self.name_of = segment.start, buffers, name_of
        self.operations = set()
        self.writers = defaultdict(set)

    def note(self, what, how, address):
        """Note an operation on a word, if the word is shared."""
        if self.races.is_shared(address):
            word = self.name_of(address)
            self.operations.add((word, what, how))
            if what != "load":
                self.writers[word, address - self.begin].add(self.ranks.own)

    def data(self, what, how, address, count):
        """Note a plain access to ``count`` bytes, and each of their words below the buffers."""
        for word in range(address, min(address + count, self.buffers), record.WORD_BYTES):
            self.note(what, how, word)
        self.races.data(self.ranks.own, address, count, what == "store")


recorder = Recorder()
look, write = record.peek_now, record.poke_now


def _load(ordering):
    def load(address):
        with recorder.lock:
            recorder.note("load", ordering, address)
            recorder.races.load(recorder.ranks.own, address, ordering)
            return look(address)

    return load


def _store(ordering):
    def store(address, value):
        with recorder.lock:
            recorder.note("store", ordering, address)
            recorder.races.store(recorder.ranks.own, address, ordering)
            write(address, value)

    return store


def peek(address):
    with recorder.lock:
        recorder.data("load", "plain", address, record.WORD_BYTES)
        return look(address)


def poke(address, value):
    with recorder.lock:
        recorder.data("store", "plain", address, record.WORD_BYTES)
        write(address, value)


def fetch_add(address, value):
    with recorder.lock:
        recorder.note("atomicrmw", "add seq_cst", address)
        recorder.races.exchange(recorder.ranks.own, address)
        before = look(address)
        write(address, before + value)
        return before


def compare_exchange(address, expected, desired):
    with recorder.lock:
        recorder.note("cmpxchg", "acq_rel acquire", address)
        recorder.races.exchange(recorder.ranks.own, address)
        before = look(address)
        if before == expected:
            write(address, desired)
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
        count = blocks * atomics.COPY_BLOCK_BYTES
        recorder.races.streams(recorder.ranks.own, destination, count)


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

# The views and tables of records call these two functions.
record.peek_now, record.poke_now = peek, poke
