"""A signal that makes a rank write the stack of its Python code to its stderr.

The handler is that of faulthandler. It needs neither the GIL nor the interpreter, so it works even
if the rank hangs in compiled code, or in a C library. Ranks use it only on Linux, because other
systems have no signal to spare.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys

from cobre_comm.system.streams import STDERR

NUMBER = signal.SIGRTMIN + 9 if sys.platform == "linux" else 0


def listen() -> None:
    """Make this process answer the signal from now on, unless it already has a handler for it."""
    if NUMBER and signal.getsignal(NUMBER) == signal.SIG_DFL:
        with contextlib.suppress(OSError, ValueError):  # stderr of this process is closed
            faulthandler.register(NUMBER, file=STDERR, all_threads=True)


def ask(pid: int) -> None:
    """Send the signal to a process, which may have ended, or be of another user by now."""
    with contextlib.suppress(OSError):
        os.kill(pid, NUMBER)
