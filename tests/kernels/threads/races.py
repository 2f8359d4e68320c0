"""A detector of data races: which thread may see which write, by the orderings alone.

Vector clocks, as in "FastTrack: efficient and precise dynamic race detection" (Flanagan, Freund,
PLDI 2009). If a load with acquire reads the value of a store with release, the loading thread knows
all that the storing thread knew at the store. Nothing else orders threads, however they really ran.
Two accesses to one word, of which one is a write, are a race unless the thread of the later access
knew of the earlier access. This rule is applied to plain data, and also to relaxed words, which
other words must order.
"""

import math
from collections import defaultdict

WORD_BYTES = 8
RELEASES = {"release", "seq_cst"}
ACQUIRES = {"acquire", "seq_cst"}


class Races:
    """Accesses of threads 0 to ``size`` - 1 to the memory from ``begin`` to ``end``."""

    def __init__(self, size, begin, end):
        self._left = size  # one more thread, which has the requests that others have left
        self._clocks = [[0] * (size + 1) for _ in range(size + 1)]
        for thread, clock in enumerate(self._clocks):
            clock[thread] = 1
        self._begin, self._end = begin, end
        self._released = {}
        self._writes = {}
        self._reads = defaultdict(dict)
        self._atomic = {}
        self._streamed = [None] * size  # for each thread: the words that wait for a fence, or None
        self.found = []  # the races that were found, each described in a sentence

    def is_shared(self, address):
        """Whether an address is in the watched memory."""
        return self._begin <= address < self._end

    def data(self, thread, address, count, is_write):
        """Note a plain access to ``count`` bytes."""
        if self.is_shared(address) and count > 0:
            first, last = address // WORD_BYTES, (address + count - 1) // WORD_BYTES
            for word in range(first, last + 1):
                self._mark(thread, word * WORD_BYTES, False)
                self._access(thread, word * WORD_BYTES, is_write)

    def leave(self, thread, address, count):
        """Note that the thread has left a request, which may read these bytes at any later time."""
        self._learn(self._left, self._clocks[thread])
        self.data(self._left, address, count, False)

    def streams(self, thread, address, count):
        """Note that the stores to ``count`` bytes bypass the caches; only a fence orders them."""
        first, last = address // WORD_BYTES, (address + count - 1) // WORD_BYTES
        words = [word * WORD_BYTES for word in range(first, last + 1)]
        shared = {word for word in words if self.is_shared(word)}
        self._streamed[thread] = (self._streamed[thread] or set()) | shared
        self._writes.update(dict.fromkeys(shared, (thread, math.inf)))

    def fence(self, thread):
        """Note a fence: the next release publishes the words streamed before the fence."""
        for word in self._streamed[thread] or ():
            if self._writes.get(word) == (thread, math.inf):
                self._writes[word] = (thread, self._clocks[thread][thread])
        self._streamed[thread] = None

    def load(self, thread, address, ordering):
        """Note an atomic load."""
        self._mark(thread, address, True)
        if ordering == "monotonic":
            self._access(thread, address, False)
        elif ordering in ACQUIRES:
            self._learn(thread, self._released.get(address, ()))

    def store(self, thread, address, ordering):
        """Note an atomic store."""
        self._mark(thread, address, True)
        if ordering in RELEASES:
            self._release(thread, address, self._clocks[thread])
        else:
            self._access(thread, address, True)
            self._released.pop(address, None)

    def exchange(self, thread, address):
        """Note a read-modify-write, which both acquires and releases."""
        self._mark(thread, address, True)
        self._learn(thread, self._released.get(address, ()))
        self._release(thread, address, self._clocks[thread])

    def _learn(self, thread, clock):
        for other, time in enumerate(clock):
            self._clocks[thread][other] = max(self._clocks[thread][other], time)

    def _release(self, thread, address, clock):
        # Outside the watched memory, a release ends the thread's own call, and a fence must precede
        # the release. Within the memory, _access judges what other threads read after a release.
        if self._streamed[thread] is not None and not self.is_shared(address):
            self._report(thread, address, "released before the fence after streamed stores")
        self._released[address] = list(clock)
        self._clocks[thread][thread] += 1

    def _mark(self, thread, address, is_atomic):
        if self.is_shared(address) and self._atomic.setdefault(address, is_atomic) != is_atomic:
            self._report(thread, address, "both atomic and plain")

    def _access(self, thread, address, is_write):
        clock = self._clocks[thread]
        if address in self._writes:
            writer, time = self._writes[address]
            if writer != thread and time > clock[writer]:
                self._report(thread, address, f"not ordered after the store of thread {writer}")
        if is_write:
            for reader, time in self._reads.pop(address, {}).items():
                if time > clock[reader]:
                    self._report(thread, address, f"not ordered after the load of thread {reader}")
            self._writes[address] = (thread, clock[thread])
        else:
            self._reads[address][thread] = clock[thread]

    def _report(self, thread, address, what):
        self.found.append(f"thread {thread} at +{address - self._begin}: {what}")
