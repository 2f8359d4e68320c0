"""A rank as its launcher sees it, from the start of the process until the exit code is known.

``exec_shim.py`` sets the death signal, by which Linux kills the rank when its launcher ends.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from cobre_comm.processes.endings import Ending
from cobre_comm.processes.guardian import kill_group
from cobre_comm.processes.interpreter import start
from cobre_comm.processes.loop import Inbox, LauncherLoop
from cobre_comm.reports.report_pipe import Aborts, Met, Report
from cobre_comm.system.streams import terminal_owner

LOST_CODE = 1


class Standard(NamedTuple):
    """Descriptors that become a rank's stdin, stdout and stderr.

    When the rank has its descriptors, the launcher closes its own copies of those above 2.
    """

    stdin: int = 0
    stdout: int = 1
    stderr: int = 2
    others: tuple[int, ...] = ()  # inherited under the same numbers; `close` leaves them open

    def close(self) -> None:
        """Close the launcher's copies."""
        for descriptor in {self.stdin, self.stdout, self.stderr} - {0, 1, 2}:
            os.close(descriptor)


class RankProcess:
    """A rank that this process starts, as its launcher sees it.

    The rank has a session of its own, so a Ctrl-C of the terminal reaches it only through the
    launcher. But if its stdin is the launcher's terminal, the rank has only a process group of its
    own (``job_control.py``). Its children are in this group. ``environment`` has all variables
    of the rank, except the variable of its report pipe. Without ``cpus`` the rank is not bound.
    """

    begin = staticmethod(start)

    def __init__(
        self,
        rank: int,
        command: Sequence[str],
        environment: Mapping[str, str],
        standard: Standard,
        *,
        cpus: Sequence[int] = (),
        reports: bool = True,
    ) -> None:
        self.rank = rank
        self.ending: Ending | None = None  # None while the rank runs
        self.inbox = Inbox() if reports else None  # the launcher's end of the report pipe
        self.has_met = False  # whether the rank has made a communicator
        self.aborts = False  # whether the rank ends the whole job, by abort
        # Whether the process has ended and its exit code is lost, because this process ignores
        # SIGCHLD or has waited for all of its children.
        self.is_code_taken = False
        self.report: Report | None = None  # the rank's report on how it failed
        self._on_report: Callable[[], None] = lambda: None
        pipe = () if self.inbox is None else (self.inbox.writer,)
        variables = {} if self.inbox is None else self.inbox.variables
        # A rank that has the launcher's terminal as its stdin stays in the session of the launcher.
        self.is_in_session = terminal_owner(standard.stdin) is not None
        try:
            self._process = self.begin(
                command,
                cpus,
                bufsize=0,
                env={**environment, **variables},
                stdin=standard.stdin,
                stdout=standard.stdout,
                stderr=standard.stderr,
                pass_fds=(*pipe, *standard.others),
                start_new_session=not self.is_in_session,
                process_group=0 if self.is_in_session else None,
            )
        except BaseException:
            if self.inbox is not None:
                self.inbox.close()
            raise
        finally:
            standard.close()
        self.pid = self._process.pid
        if self.inbox is not None:
            self.inbox.handed_over()

    def serve(
        self,
        loop: LauncherLoop,
        on_report: Callable[[], None],
        hear: Callable[[bytes], None] | None = None,
    ) -> None:
        """Let a loop read the report pipe; ``hear`` gets the messages, by default ``_hear``.

        ``on_report`` is called when the rank has met the others, or has reported how it failed.
        """
        self._on_report = on_report
        if self.inbox is not None:
            self.inbox.serve(loop, hear or self._hear)

    @property
    def announced(self) -> Ending | None:
        """The failure that the rank has reported, as its ending; None if it has reported none."""
        if self.report is None or not self.report.exit_code:
            return None
        return Ending(self.rank, self.report.exit_code, time.monotonic(), self.report)

    def _hear(self, message: bytes) -> None:
        with contextlib.suppress(Exception):  # anything but a message of ours is ignored
            report = pickle.loads(message)
            if self._notes(report):
                return
            self.report = report if isinstance(report, Report) else None
        self._on_report()

    def _notes(self, message: object) -> bool:
        """Note a message ``Met`` or ``Aborts``; return whether the message is one of the two."""
        if isinstance(message, Met):
            self.has_met = True
            self._on_report()
        self.aborts |= isinstance(message, Aborts)
        return isinstance(message, (Met, Aborts))

    def look(self) -> None:
        """Note whether the process has ended; an ended process is a zombie, and keeps its id."""
        code = self.exit_code() if self.ending is None else None
        if code is None:
            return
        if self.inbox is not None:
            self.inbox.read_all()
        if self.ending is None:
            self.ending = Ending(self.rank, code, time.monotonic(), self.report, self.aborts)

    def exit_code(self) -> int | None:
        """Return the exit code of the process, negative for a signal; None while the process runs.

        If the code is lost, return 1, which means a failure, because nothing shows that the rank
        has succeeded.
        """
        if self._process.returncode is not None or not hasattr(os, "waitid"):
            return self._process.poll()  # macOS before Python 3.13 has no waitid
        if self.is_code_taken:
            return LOST_CODE
        try:
            status = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            self.is_code_taken = True
            return LOST_CODE
        if status is None:
            return None
        return status.si_status if status.si_code == os.CLD_EXITED else -status.si_status

    @property
    def has_group(self) -> bool:
        """Whether a process group with the number of the rank's process must be the rank's group.

        If the exit code is lost, another process may have the number by now, and lead a group.
        """
        return not (self.is_code_taken and _exists(self.pid))

    def signal(self, number: int, *, group: bool) -> None:
        """Send a signal to the rank, or to its whole process group; a zombie ignores it."""
        self.exit_code()
        if group and self.has_group:
            kill_group(self.pid, number)
        elif not group and not self.is_code_taken and self.ending is None:
            with contextlib.suppress(ProcessLookupError):  # ended, and SIGCHLD is ignored
                os.kill(self.pid, number)

    def reap(self) -> None:
        """Release an ended process, and its pipes."""
        self._process.wait()
        if self.inbox is not None:
            self.inbox.close()


def _exists(pid: int) -> bool:
    """Whether there is a process of that number."""
    try:
        os.kill(pid, 0)
    except OSError as error:  # a process of another user exists, too
        return not isinstance(error, ProcessLookupError)
    return True
