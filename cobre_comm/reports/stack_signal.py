"""A signal on which a rank writes the stack of its Python code to its stderr.

The handler is faulthandler's. It needs neither the GIL nor the interpreter's attention, so it works
in a rank that hangs in compiled code, or in a C library. Linux only: other systems have no signal
to spare.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys

NUMBER = signal.SIGRTMIN + 9 if sys.platform == "linux" else 0
_STDERR = 2


def listen() -> None:
    """Let this process answer the signal from now on, unless it has a handler for it already."""
    if NUMBER and signal.getsignal(NUMBER) == signal.SIG_DFL:
        with contextlib.suppress(OSError, ValueError):  # its stderr is closed
            faulthandler.register(NUMBER, file=_STDERR, all_threads=True)


def ask(pid: int) -> None:
    """Send the signal to a process, which may have ended, or be of another user by now."""
    with contextlib.suppress(OSError):
        os.kill(pid, NUMBER)
