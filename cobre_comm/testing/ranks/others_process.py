"""A process that another one has started: it can be signalled, and be awaited, but not reaped."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import weakref

DEATH_S = 2.0  # how long a process may take to end once it is killed


class Process:
    """One that is alive when this is made; its number may be another's later.

    Linux keeps them apart by a descriptor (pidfd_open(2)), which is readable once it has ended.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._fd = -1
        if sys.platform == "linux":
            with contextlib.suppress(ProcessLookupError):
                self._fd = os.pidfd_open(pid)
                weakref.finalize(self, os.close, self._fd)

    def signal(self, number: int) -> None:
        """Send a signal unless it has ended."""
        with contextlib.suppress(ProcessLookupError):
            if sys.platform != "linux":
                os.kill(self._pid, number)
            elif self._fd >= 0:
                signal.pidfd_send_signal(self._fd, number)

    def kill(self) -> None:
        """End it, and return when it has ended."""
        self.signal(signal.SIGKILL)
        if self._fd >= 0:
            select.select([self._fd], [], [], DEATH_S)
