"""One item after the other, from threads that share something and from their signal handlers."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any


class InTurn:
    """Calls ``take`` with each item, never amid another call of it; threads wait for each other.

    A signal handler cannot wait for the call that it interrupts, so the interrupted thread takes
    the handler's item next.
    """

    def __init__(self, take: Callable[[Any], None]) -> None:
        self._take = take
        self._items: deque[Any] = deque()
        self._lock = threading.RLock()
        self._takes = False

    def __call__(self, item: Any) -> None:
        """Take an item, or leave it to the call that a signal handler interrupts."""
        with self._lock:
            self._items.append(item)
            while self._items and not self._takes:
                self._takes = True
                try:
                    if self._items:  # a signal handler may have taken it since the test above
                        self._take(self._items.popleft())
                finally:
                    self._takes = False
