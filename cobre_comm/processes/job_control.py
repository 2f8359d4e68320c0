"""Job control: ranks stop and continue with their launcher, and one rank may read the terminal.

Ranks are in process groups of their own, so a terminal stops the launcher alone. If the stdin of a
rank (rank 0) is the launcher's terminal, the rank stays in the session of the launcher. The
launcher's group owns the terminal, so the kernel stops the rank when it reads. If the launcher is
in the foreground, it then lends the terminal to the group of the rank. If not, the launcher stops
all ranks and itself, as a shell expects of a job that reads in the background.

While the terminal is lent, Ctrl-C and Ctrl-Z reach that rank alone, and the launcher does what the
rank does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Sequence

from cobre_comm.contract.closing import Closing
from cobre_comm.processes.guardian import kill_group
from cobre_comm.processes.rank import RankProcess
from cobre_comm.system.streams import STDIN, terminal_owner

STOPPING = (signal.SIGTSTP, signal.SIGTTOU)
READING = (signal.SIGTTIN, signal.SIGTTOU)
_ENDING = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)  # signals that a terminal sends


class JobControl(Closing):
    """Handles the stops of a launcher; make and close it in the main thread, or it does nothing.

    ``ranks`` is the list to which the launcher adds its ranks.
    """

    def __init__(self, ranks: Sequence[RankProcess]) -> None:
        self._ranks = ranks
        self._handled: list[int] = []
        self._has_lent = False
        if threading.current_thread() is threading.main_thread():
            for number in STOPPING:
                if signal.getsignal(number) == signal.SIG_DFL:
                    signal.signal(number, lambda number, frame: self.stop(number))
                    self._handled.append(number)

    def close(self) -> None:
        """Restore the handlers, take the terminal back; call this before ranks are reaped."""
        for number in self._handled:
            signal.signal(number, signal.SIG_DFL)
        self._handled.clear()
        reader = self._reader
        if self._has_lent and reader is not None and terminal_owner(STDIN) == reader.pid:
            _give_to(os.getpgrp())

    @property
    def _reader(self) -> RankProcess | None:
        """The rank that may read the terminal."""
        return next((rank for rank in self._ranks if rank.is_in_session), None)

    def look(self) -> int:
        """Act if the rank that reads the terminal was stopped; call this after SIGCHLD.

        If the terminal has ended that rank by a signal, and the end of the rank is not noted yet,
        return the signal. Otherwise return 0.
        """
        reader = self._reader
        if reader is None or reader.ending is not None:
            return 0
        code = reader.exit_code()
        if code is not None:
            return -code if self._has_lent and -code in _ENDING else 0
        status = os.waitid(os.P_PID, reader.pid, os.WSTOPPED | os.WNOHANG)
        if status is None:
            return 0
        if status.si_status in READING and self._lend(reader):
            kill_group(reader.pid, signal.SIGCONT)
        elif status.si_status in (*READING, signal.SIGTSTP):
            self.stop(status.si_status)
        return 0

    def _lend(self, reader: RankProcess) -> bool:
        """Give a rank the terminal; return False if the launcher does not own the terminal."""
        if terminal_owner(STDIN) not in (os.getpgrp(), reader.pid):
            return False
        _give_to(reader.pid)
        self._has_lent = True
        return True

    def stop(self, number: int) -> None:
        """Stop the ranks, then this process; continue the ranks when this process continues."""
        reader = self._reader
        if reader is not None and number in READING and not _is_watched():
            for each in (signal.SIGHUP, signal.SIGCONT):  # as the kernel does to an orphaned group
                kill_group(reader.pid, each)
            return
        running = [rank for rank in self._ranks if rank.exit_code() is None]
        for rank in running:
            rank.signal(signal.SIGSTOP, group=True)
        before = signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)  # returns after SIGCONT
        signal.signal(number, before)
        if reader in running and (self._has_lent or number in READING):
            self._lend(reader)
        for rank in running:
            rank.signal(signal.SIGCONT, group=True)


def _give_to(group: int) -> None:
    """Make a process group own the terminal, even if this process is in the background."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    try:
        with contextlib.suppress(OSError):  # the group has ended, or the terminal is gone
            os.tcsetpgrp(STDIN, group)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_watched() -> bool:
    """Whether a shell of this session can continue this process; if not, it must not be stopped."""
    try:
        return os.getsid(os.getppid()) == os.getsid(0) and os.getpgid(os.getppid()) != os.getpgrp()
    except ProcessLookupError:
        return False
