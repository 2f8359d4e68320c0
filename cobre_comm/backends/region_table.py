"""The regions that this process has mapped, for the kernels (``collective/regions.py``)."""

from __future__ import annotations

import collections
import functools
import operator
import os
import threading
from collections.abc import Callable

from cobre_kernels.collective.regions import NO_REGION, REGIONS, ROWS
from cobre_kernels.machine import access


def draw_number() -> int:
    """Draw a random number from 1 to 2**62 for a new region, so that no other region has it."""
    return 1 + (int.from_bytes(os.urandom(8)) >> 2)


class RegionTable:
    """Lists the regions in rows that the kernels read."""

    def __init__(self) -> None:
        self._words = REGIONS.array(ROWS)  # zeros: only rows that are used take memory
        self._regions = REGIONS.of(self._words)
        # The address of the record of these rows; the record of a communicator points to this
        # record.
        self.address: int = self._regions.address
        self._free: list[int] = []  # rows below ``_used`` that hold no region now
        self._used = 0
        self.renew_lock()

    def renew_lock(self) -> None:
        """Make a new lock: in a forked child nobody holds the old lock, but it may look taken."""
        self._lock = threading.Lock()

    def add(self, number: int, begin: int, nbytes: int) -> Callable[[], None]:
        """List a region; return a function that unlists it, to be called before unmapping.

        The returned function runs no Python code, and takes no lock, because the garbage collector
        may call it while this method runs. If no row is free, ``OSError`` is raised.
        """
        store: Callable[..., int] = access.store_word_kernel.call
        with self._lock:
            row = self._free.pop() if self._free else self._used
            if row == ROWS:
                raise OSError(f"a process cannot have more than {ROWS} regions")
            region = self._regions.rows[row]
            # Releases: pair with the loads in regions.locate, which loads the number before the
            # bounds and again after them. If the bounds have changed meanwhile, the two numbers
            # differ, and locate ignores the row.
            store(region.begin, begin)
            store(region.end, begin + nbytes)
            store(region.number, number)
            self._used = max(self._used, row + 1)
            store(self._regions.used, self._used)
        steps: list[Callable[[], object]] = [
            functools.partial(store, region.number, NO_REGION),
            functools.partial(self._free.append, row),
        ]
        drop = collections.deque[object](maxlen=0).extend
        return functools.partial(drop, map(operator.call, steps))


REGION_TABLE = RegionTable()
os.register_at_fork(after_in_child=REGION_TABLE.renew_lock)
