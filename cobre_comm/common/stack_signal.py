"""A signal that has a rank write to its stderr where in its Python code it is.

The handler is faulthandler's. It needs neither the GIL nor the interpreter's attention, so it works
in a rank that hangs in compiled code, or in a C library. Linux only: other systems have no signal
to spare.

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
    """Have this process answer from now on, unless it does something else with that signal."""
    if NUMBER and signal.getsignal(NUMBER) == signal.SIG_DFL:
        with contextlib.suppress(OSError, ValueError):  # its stderr is closed
            faulthandler.register(NUMBER, file=_STDERR, all_threads=True)


def ask(pid: int) -> bool:
    """Ask a process; return False if it does not listen: then the signal would end it."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        caught = next(line for line in lines if line.startswith("SigCgt:")).split()[1]
        if not NUMBER or not int(caught, 16) >> (NUMBER - 1) & 1:
            return False
        os.kill(pid, NUMBER)
    except (OSError, StopIteration):
        return False
    return True
