"""The first program of a rank: it binds itself to its CPUs, so that the script begins there.

It also has the kernel kill the rank when the launcher ends, unblocks the signals that its starter
has blocked, and then becomes the script.

It is run by path, isolated (``python -I -S exec_shim.py PARENT CPUS COMMAND...``), so it imports
nothing of the script's world. ``exec`` then replaces it, and the script sees a plain interpreter.

PR_SET_PDEATHSIG survives ``exec``. It is sent when the *thread* that started the child ends. So
only what the first thread of a process starts is tied to the process. Source: prctl(2).
"""

from __future__ import annotations

import os
import signal
import sys

UNBOUND = UNTIED = "-"
OUTSIDE = 0  # getppid(2) for a parent that lives in an outer PID namespace
_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when process ``parent``, which started it, ends."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() not in (parent, OUTSIDE):  # it ended before the call above
        os._exit(128 + signal.SIGKILL)


def let_signals_come() -> None:
    """Unblock all signals, and ignore SIGCHLD no more, as a shell would start this program.

    A thread that starts ranks may block signals that the launcher sends to ranks. SIGINT stays as
    it is, because a worker of ``launch`` unblocks it once the worker can report it.
    """
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked & {signal.SIGINT})
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def main() -> None:
    """Bind this process to its CPUs, tie it to its parent, and become the command."""
    parent, cpus, *command = sys.argv[1:]
    let_signals_come()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback of the shim on Ctrl-C
    if parent != UNTIED:
        die_with_parent(int(parent))
    if cpus != UNBOUND:
        os.sched_setaffinity(0, map(int, cpus.split(",")))
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
