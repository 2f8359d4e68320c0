"""Process 1 of a container: it passes signals on to the launcher, and reaps all orphans.

A container that is started without an init has the launcher as its process 1. The kernel gives
process 1 every orphan, such as a process that a rank's program left in the background. An orphan
that ends stays a zombie until its parent reaps it. So process 1 only reaps and forwards signals;
the launcher is its child.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from cobre_comm.run.launcher_signals import FORWARDED_SIGNALS

_FROM_KERNEL = 0x80  # SI_KERNEL: a terminal's signal, which the launcher has got as well


def below_init(body: Callable[[], int]) -> int:
    """Run ``body``, in a child if this is process 1; return its exit status.

    If a signal ended the child, the status is 128 plus the number of the signal.
    """
    if os.getpid() != 1:
        return body()
    awaited = {signal.SIGCHLD, *FORWARDED_SIGNALS}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return body()
    status = None
    while status is None:
        came = signal.sigwaitinfo(awaited)
        if came.si_signo == signal.SIGCHLD:
            status = _reap(child)
        elif came.si_code != _FROM_KERNEL:
            os.kill(child, came.si_signo)  # until it is reaped, the number stays its own
    return status if status >= 0 else 128 - status


def _reap(child: int) -> int | None:
    """Reap all children that have ended; return the exit code of ``child``, None while it runs."""
    ended = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:  # no other child
            return ended
        if pid == 0:
            return ended
        if pid == child:
            ended = os.waitstatus_to_exitcode(status)
