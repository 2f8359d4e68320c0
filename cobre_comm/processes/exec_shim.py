"""What the process of a rank does before it becomes the script.

The process binds itself to its CPUs, has the kernel kill it when the launcher ends, and unblocks
the signals that the launcher has blocked.

A small launcher of one thread forks, and the child calls ``prepare``. If the launcher has several
threads, the child of a fork may run no Python before ``exec``, because another thread may have held
a lock. Then, or if a fork would be expensive, the rank runs this file first, as an isolated program
(``python -I -S exec_shim.py PARENT CPUS COMMAND...``). The program imports nothing of the script's
world, and ``exec`` replaces it by the command, so the script sees a plain interpreter. The program
costs each rank a start of Python.

The setting PR_SET_PDEATHSIG survives ``exec``. The kernel sends its signal when the *thread* that
started the child ends. So only a child of the first thread of a process is tied to the process.
Sources: prctl(2), and the warning on ``preexec_fn`` in Python's page on subprocess.
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
    if os.getppid() not in (parent, OUTSIDE):  # the parent ended before the call above
        os._exit(128 + signal.SIGKILL)


def let_signals_come(blocked: set[int]) -> None:
    """Let signals act as in a program that a shell starts: none is blocked, SIGCHLD not ignored.

    The thread that starts a rank may block signals that the launcher sends to ranks. Only SIGINT
    stays blocked if it was: a worker of ``launch`` unblocks it when the worker can report it.
    """
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):  # of Python's own, or of a launcher that forked
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
    """Prepare a child of a fork; if that raises, write the traceback to stderr and exit."""
    try:
        signal.set_wakeup_fd(-1)  # the descriptor is the launcher's
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
