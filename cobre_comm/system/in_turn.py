"""Handles one item after another, from threads that share something and their signal handlers."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any


class InTurn:
    """Calls ``take`` with each item, one call at a time; threads wait for each other.

    A signal handler cannot wait for the call that it has interrupted. So the interrupted thread
    takes the handler's item next.
    """

    def __init__(self, take: Callable[[Any], None]) -> None:
        self._take = take
        self._items: deque[Any] = deque()
        self._lock = threading.RLock()
        self._takes = False

    def __call__(self, item: Any) -> None:
        """Take an item; a signal handler leaves it to the call that the handler interrupts."""
        with self._lock:
            self._items.append(item)
            while self._items and not self._takes:
                self._takes = True
                try:
                    if self._items:  # a signal handler may have taken the item since the test above
                        self._take(self._items.popleft())
                finally:
                    self._takes = False
