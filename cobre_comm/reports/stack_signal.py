"""A signal that makes a rank write the stack of its Python code to its stderr.

The handler is that of faulthandler. It needs neither the GIL nor the interpreter, so it works even
if the rank hangs in compiled code, or in a C library. Only on Linux, because other systems have no
signal to spare.

Source: proc_pid_status(5) on SigCgt.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
from pathlib import Path

NUMBER = signal.SIGRTMIN + 9 if sys.platform == "linux" else 0
_STDERR = 2


def listen() -> None:
    """Make this process answer the signal from now on, unless it already has a handler for it."""
    if NUMBER and signal.getsignal(NUMBER) == signal.SIG_DFL:
        with contextlib.suppress(OSError, ValueError):  # stderr of this process is closed
            faulthandler.register(NUMBER, file=_STDERR, all_threads=True)


def is_answered_by(pid: int) -> bool:
    """Tell whether a process has a handler for the signal; without one, the signal would end it."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        caught = next(line for line in lines if line.startswith("SigCgt:")).split()[1]
    except (OSError, StopIteration):
        return False
    return bool(NUMBER and int(caught, 16) >> (NUMBER - 1) & 1)


def ask(pid: int) -> None:
    """Send the signal to a process, which may have ended, or be of another user by now."""
    with contextlib.suppress(OSError):
        os.kill(pid, NUMBER)
