"""Where a launcher waits: descriptors, each with what is called when it is ready."""

from __future__ import annotations

import select
import time
from collections.abc import Callable

NEVER = float("inf")


class Loop:
    """Waits for many descriptors at once."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._handlers: dict[int, Callable[[], object]] = {}

    def serve(self, fd: int, handler: Callable[[], object], events: int = select.POLLIN) -> None:
        """Call ``handler`` whenever that descriptor is ready, until :meth:`unserve`."""
        self._handlers[fd] = handler
        self._poll.register(fd, events)

    def unserve(self, fd: int) -> None:
        """Look at that descriptor no more; call it before closing the descriptor."""
        if self._handlers.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def step(self, until: float) -> None:
        """Wait until something happens, at most until then, and handle it."""
        wait_ms = None if until == NEVER else max(0.0, until - time.monotonic()) * 1000 + 0.5
        for fd, _ in self._poll.poll(wait_ms):
            if fd in self._handlers:  # an earlier handler may have ended it
                self._handlers[fd]()
