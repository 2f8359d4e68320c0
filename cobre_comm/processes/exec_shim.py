"""What the process of a rank does before it becomes the script.

The process binds itself to its CPUs, makes the kernel kill it when the launcher ends, and unblocks
the signals that the launcher has blocked.

If the launcher is small and has one thread, it forks, and the child calls ``prepare``. If the
launcher has several threads, the child of a fork may run no Python before ``exec``, because another
thread may have held a lock. In this case, or if a fork would be expensive, the rank runs this file
first, as an isolated program (``python -I -S exec_shim.py PARENT CPUS COMMAND...``). The program
imports nothing that belongs to the script, and ``exec`` replaces it by the command, so the script
gets a plain interpreter. The program costs each rank an additional start of Python.

The setting PR_SET_PDEATHSIG survives ``exec``. The kernel sends this signal when the *thread* that
started the child ends. So only a child of the first thread of a process dies with the process.
Sources: prctl(2), and the warning on ``preexec_fn`` in Python's page on subprocess.
"""

from __future__ import annotations

import os
import signal
import sys

UNBOUND = UNTIED = "-"
OUTSIDE = 0  # getppid(2), if the parent is in an outer PID namespace
_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Make the kernel kill this process when process ``parent``, which started it, ends."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() not in (parent, OUTSIDE):  # the parent ended before the call above
        os._exit(128 + signal.SIGKILL)


def let_signals_come(blocked: set[int]) -> None:
    """Make signals act as in a program of a shell: none is blocked, and SIGCHLD is not ignored.

    The thread that starts a rank may block signals that the launcher sends to ranks. Only SIGINT
    stays blocked among them: a worker of ``launch`` unblocks SIGINT when it can report a Ctrl-C.
    """
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):  # Python's handler, or a launcher's
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked & {signal.SIGINT})


def prepare(parent: int | None, cpus: list[int], blocked: set[int]) -> None:
    """Tie this process to its parent, if one is given, and bind it to CPUs, if there are any."""
    let_signals_come(blocked)
    if parent is not None:
        die_with_parent(parent)
    if cpus:
        os.sched_setaffinity(0, cpus)


def prepare_or_exit(parent: int | None, cpus: list[int], blocked: set[int]) -> None:
    """Prepare a child of a fork; if that raises, write the traceback to stderr and exit."""
    try:
        signal.set_wakeup_fd(-1)  # the descriptor belongs to the launcher
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
