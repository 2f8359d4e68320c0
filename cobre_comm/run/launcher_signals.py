"""The launcher's signals: those that it forwards, and a pipe that brings signals to its loop."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable

from cobre_comm.contract.closing import Closing

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
# A terminal sends each of these to a whole process group.
GROUP_SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_READ_BYTES = 2**16


def usual_signals() -> None:
    """Let every signal reach this process, and let it learn how its children end.

    Launchers of clusters, JVMs and daemons may start programs with signals blocked, or with SIGCHLD
    ignored. Ranks inherit the mask. Any other ignored signal stays ignored: ``nohup`` ignores
    SIGHUP, and a shell without job control ignores SIGINT for a command that ends in ``&``.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


class SignalInbox(Closing):
    """Signals as bytes in a pipe, so that a signal ends a wait, and all are handled in order."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._old: dict[int, object] = {}
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in numbers:
            old = signal.getsignal(number)
            if old is not signal.SIG_IGN:  # SIGHUP under nohup stays ignored
                self._old[number] = old
                signal.signal(number, lambda number, frame: None)

    def close(self) -> None:
        """Restore the handlers of the signals, and close the pipe."""
        for number, old in self._old.items():
            signal.signal(number, old or signal.SIG_DFL)  # type: ignore[arg-type]
        signal.set_wakeup_fd(-1)
        os.close(self._reader)
        os.close(self._writer)

    def fileno(self) -> int:
        """Return the descriptor that is readable when a signal has arrived."""
        return self._reader

    def take(self) -> bytes:
        """Return the numbers of the signals that have arrived."""
        try:
            return os.read(self._reader, _READ_BYTES)
        except BlockingIOError:
            return b""
