"""The regions that this process has mapped, for the kernels (``collective/regions.py``)."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable

from cobre_kernels.collective.regions import NO_REGION, REGIONS, ROWS
from cobre_kernels.machine import access


def draw_number() -> int:
    """Draw a random number for a new region; of 2**62, so that no two regions have the same."""
    return 1 + secrets.randbits(62)


class RegionTable:
    """Lists regions in rows that the kernels read; a region without a free row is not found."""

    def __init__(self) -> None:
        self._words = REGIONS.array(ROWS)
        self._regions = REGIONS.of(self._words)
        # Of the record of these rows, for the record of a communicator.
        self.address: int = self._regions.address
        self._free = list(reversed(range(ROWS)))
        self._used = 0
        self._unlisted: set[int] = set()
        self.renew_lock()

    def renew_lock(self) -> None:
        """In a forked child: no thread is inside."""
        self._lock = threading.Lock()

    def add(self, number: int, begin: int, nbytes: int) -> Callable[[], None]:
        """List a region; return the function that strikes it off, to be called before unmapping."""
        store: Callable[..., int] = access.store_word_kernel.call  # loaded now: may run at exit
        regions, rows, no_region = self._regions, ROWS, NO_REGION  # likewise
        with self._lock:
            row = self._free.pop() if self._free else ROWS
            if row == ROWS:
                self._unlisted.add(number)
            else:
                region = regions.rows[row]
                # Releases: pair with the loads in regions.locate. A thread does not believe bounds
                # that changed while it read them, because the number has changed by then.
                store(region.begin, begin)
                store(region.end, begin + nbytes)
                store(region.number, number)
                self._used = max(self._used, row + 1)
            # Releases: pair with the loads in regions.may_be_shared and regions.locate.
            store(regions.unlisted, int(bool(self._unlisted)))
            store(regions.used, self._used)

        def strike_off() -> None:
            """Take no lock: the collector may run this within :meth:`add`."""
            if row == rows:
                self._unlisted.discard(number)
            else:
                store(region.number, no_region)
                self._free.append(row)

        return strike_off


REGION_TABLE = RegionTable()
os.register_at_fork(after_in_child=REGION_TABLE.renew_lock)
