"""What a rank does before it becomes the script: it binds itself to its CPUs, and so on.

It also has the kernel kill the rank when the launcher ends, and unblocks the signals that its
starter has blocked.

A small launcher of one thread forks, and the child calls ``prepare``. A child of a process of
several threads may run no Python before ``exec``, because another thread may have held a lock.
There, and where a fork would be expensive, this file is a program that the rank runs first,
isolated (``python -I -S exec_shim.py PARENT CPUS COMMAND...``). It imports nothing of the script's
world. ``exec`` then replaces it, and the script sees a plain interpreter. That costs each rank a
start of Python.

PR_SET_PDEATHSIG survives ``exec``. It is sent when the *thread* that started the child ends. So
only what the first thread of a process starts is tied to the process. Sources: prctl(2), and the
warning on ``preexec_fn`` in Python's page on subprocess.
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


def let_signals_come(blocked: set[int]) -> None:
    """Unblock all signals, and ignore SIGCHLD no more, as a shell would start this program.

    A thread that starts ranks may block signals that the launcher sends to ranks. SIGINT stays
    blocked if it was, because a worker of ``launch`` unblocks it once the worker can report it.
    """
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):  # Python's own, and those of a launcher that forked
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked & {signal.SIGINT})


def prepare(parent: int | None, cpus: list[int], blocked: set[int]) -> None:
    """Tie this process to its parent, if one is given, and bind it to CPUs, if any are."""
    let_signals_come(blocked)
    if parent is not None:
        die_with_parent(parent)
    if cpus:
        os.sched_setaffinity(0, cpus)


def prepare_or_exit(parent: int | None, cpus: list[int], blocked: set[int]) -> None:
    """Prepare a child of a fork, which has nobody to raise to: its stderr gets the traceback."""
    try:
        signal.set_wakeup_fd(-1)  # it is the launcher's
        prepare(parent, cpus, blocked)
    except BaseException:
        sys.__excepthook__(*sys.exc_info())
        sys.stderr.flush()
        os._exit(1)


def main() -> None:
    """Prepare this process, and become the command."""
    parent, cpus, *command = sys.argv[1:]
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    bound = [] if cpus == UNBOUND else [int(cpu) for cpu in cpus.split(",")]
    prepare(None if parent == UNTIED else int(parent), bound, blocked)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
