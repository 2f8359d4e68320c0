"""The report pipe: a rank tells its launcher, as data, how it failed and which ranks it lost.

The launcher names the pipe in an environment variable. A rank claims the pipe when it makes its
first communicator. From then on neither its children nor the programs that it becomes have the
pipe. If an exception ends the rank after the import of this package and before its first
communicator, the rank claims the pipe to report the exception.

A rank sends ``Met`` when it has made its first communicator, and ``Aborts`` when it ends the whole
job. A rank of ``cobre-comm run`` sends one ``Report``: when an exception is not caught, or when it
exits after it has lost a rank. A worker of ``launch`` sends ``ProgressReport``, and then ``Done``
or ``Failed``, which contains a report. A rank that is killed, or that calls ``os._exit``, sends
nothing: its failure counts as primary.

If the launcher asks for it, a rank does not print its traceback. Then the report contains the
traceback, and the launcher prints it once for all ranks with the same mistake. A rank prints its
traceback itself if the traceback is too long, if the report cannot be sent, or if the program has
its own excepthook.
"""

from __future__ import annotations

import atexit
import gc
import os
import pickle
import stat
import sys
import traceback
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType

from cobre_comm.reports import frames, stack_signal
from cobre_comm.reports.exception_text import LONGEST_TEXT, cut, text_of
from cobre_comm.reports.raised import type_of, uncaught
from cobre_comm.system.in_turn import InTurn

VARIABLE = "COBRE_REPORT_PIPE"  # DESCRIPTOR:INODE
HOLDS_VARIABLE = "COBRE_REPORT_HOLDS"  # set if ranks are to leave their tracebacks to the launcher
LONGEST_LINE = 5_000  # characters of one entry of a traceback; the last entry has the text

_lost: tuple[int, ...] = ()  # the ranks of the last loss that this process knows of
_lost_run = False  # whether these ranks still run
_is_heard = False  # whether a launcher gets the report
_reporter: _Reporter | None = None  # the reporter of this process, until it has met its peers
_listens_in = 0  # the process that reports exceptions before its first communicator
_launcher = ""  # the launcher of ours that has given this process its pipe, or ""
_pipe: ReportPipe | None = None  # the pipe that this process has claimed


class Met:
    """The rank has made its first communicator, so all ranks have met."""


class Aborts:
    """The rank ends the whole job, by ``abort``."""


@dataclass(frozen=True)
class Report:
    """How a rank failed."""

    error: str  # the type of the uncaught exception; "" if the rank exits without an exception
    text: str  # the text of the exception
    trace: str  # the formatted traceback of the exception
    exit_code: int  # the exit code with which Python will end this process
    # The lost ranks from which this failure follows; empty if it has a cause of its own.
    lost: tuple[int, ...] = ()
    where: str = ""  # the file and the line that raised the exception
    is_held: bool = False  # whether the launcher is to print the traceback
    # Whether all lost ranks have closed their communicators or given up, so that they still run.
    they_end: bool = False

    @classmethod
    def of(cls, error: BaseException) -> Report:
        """Describe an uncaught exception."""
        trace = "".join(cut(entry, LONGEST_LINE) for entry in traceback.format_exception(error))
        code = exit_code_of(error)
        lost = lost_ranks(error)
        if isinstance(error, SystemExit):  # it may follow from an error that was caught
            lost = lost or _lost
        return cls(
            type_of(error),
            text_of(error),
            trace[-LONGEST_TEXT:],
            code,
            lost,
            _where(error.__traceback__),
            they_end=_lost_run,
        )

    @property
    def cause(self) -> tuple[str, str, str]:
        """Type, text and place of the exception: the same for the same mistake on several ranks."""
        return self.error, self.text, self.where

    def says_the_same(self, other: Report) -> bool:
        """Whether two exceptions have the same class and text."""
        return (self.error, self.text) == (other.error, other.text)


def _where(trace: TracebackType | None) -> str:
    """Return file and line of the innermost frame of a traceback; "" if there is none."""
    steps = list(traceback.walk_tb(trace))
    return f"{steps[-1][0].f_code.co_filename}:{steps[-1][1]}" if steps else ""


def exit_code_of(error: BaseException) -> int:
    """Return the exit code with which Python ends after an exception."""
    if not isinstance(error, SystemExit):
        return 1
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1


def lost_ranks(error: BaseException | None) -> tuple[int, ...]:
    """Return the ranks that an error of ours names; its causes and contexts are searched too."""
    seen: set[int] = set()  # by identity, because the == of an exception may be code of others
    while error is not None and id(error) not in seen:
        is_ours = type(error).__module__ == "cobre_comm.errors"
        if is_ours and (ranks := getattr(error, "ranks", None)):
            return tuple(ranks)
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return ()


def note_lost(ranks: tuple[int, ...], *, they_run: bool) -> None:
    """Remember which ranks this rank has lost, in case the program catches the error and exits."""
    global _lost, _lost_run
    if ranks:
        _lost, _lost_run = ranks, they_run


def forget_lost() -> None:
    """Forget lost ranks: this rank continues without them, so a later failure is its own."""
    global _lost, _lost_run
    _lost, _lost_run = (), False


def awaits_lost_ranks(error: BaseException) -> bool:
    """Whether ranks that an error names still run, and a launcher will learn how they end.

    Such a rank may end with its own exit code, which tells the cause.
    """
    return _is_heard and _lost_run and bool(lost_ranks(error))


class ReportPipe:
    """The rank's end of the pipe; threads may share it, and a forked child writes nothing to it."""

    def __init__(self, fd: int) -> None:
        self._pid = os.getpid()
        self._send = InTurn(partial(frames.send, fd))

    def send(self, message: bytes) -> bool:
        """Send a message; False in a forked child, ``OSError`` if the launcher has gone."""
        if os.getpid() != self._pid:
            return False
        self._send(message)
        return True

    def say(self, thing: object) -> bool:
        """Send an object; return whether a launcher may read it."""
        try:
            return self.send(pickle.dumps(thing))
        except OSError:  # the launcher may have ended
            return False


def launcher() -> str:
    """Return the name of our launcher that has started this process; "" if there is none."""
    return _launcher


def claim(launcher: str = "") -> ReportPipe | None:
    """Return the pipe of this process, at the first call only; None if no launcher has given one.

    ``launcher`` is the name of the launcher that gives its processes such pipes.
    """
    global _launcher, _pipe
    fd, _, inode = os.environ.pop(VARIABLE, "").partition(":")
    if not fd:  # int("") would raise, and a Ctrl-C at that moment may be lost
        return None
    try:
        status = os.fstat(int(fd))
    except (ValueError, OSError):
        return None
    # A child of the rank may have the variable, and another file under that number.
    if not stat.S_ISFIFO(status.st_mode) or str(status.st_ino) != inode:
        return None
    _launcher = launcher
    os.set_inheritable(int(fd), False)
    _pipe = ReportPipe(int(fd))
    return _pipe


def say_aborts() -> None:
    """Tell the launcher that this process ends the whole job."""
    if _pipe is not None:
        _pipe.say(Aborts())


def listen() -> None:
    """Report an exception that ends the process before its first communicator.

    The pipe is claimed only if there is such an exception.
    """
    global _listens_in
    if sys.excepthook is sys.__excepthook__:
        _listens_in = os.getpid()
        sys.excepthook = _uncaught_early


def _uncaught_early(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if uncaught() is not error:
        sys.__excepthook__(kind, error, trace)
        return
    sys.excepthook = sys.__excepthook__
    if os.getpid() == _listens_in:  # a failure of a forked child is not the rank's
        install()
    sys.excepthook(kind, error, trace)


def install() -> None:
    """Report a failure of this process from now on, if it has a pipe."""
    global _is_heard, _reporter
    if sys.excepthook is _uncaught_early:
        sys.excepthook = sys.__excepthook__
    pipe = claim("cobre-comm run")
    if pipe is not None:
        _is_heard = True
        stack_signal.listen()
        _reporter = _Reporter(pipe, holds=os.environ.pop(HOLDS_VARIABLE, "") == "1")
        sys.excepthook = _reporter.uncaught
        atexit.register(_reporter.at_exit)


def say_met() -> None:
    """Tell the launcher, once, that this process has made a communicator."""
    global _reporter
    reporter, _reporter = _reporter, None
    if reporter is not None:
        reporter.met()


class _Reporter:
    """Sends one report: when an exception is not caught, or otherwise at the exit of Python."""

    def __init__(self, pipe: ReportPipe, *, holds: bool) -> None:
        self._pipe: ReportPipe | None = pipe
        self._before = sys.excepthook
        self._holds = holds and self._before is sys.__excepthook__

    def met(self) -> None:
        """Send the message that the ranks have met."""
        if self._pipe is not None:
            self._pipe.say(Met())

    def uncaught(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        """Report an uncaught exception; this function is ``sys.excepthook``.

        At the end, ``gc.freeze`` exempts all present objects from Python's last garbage
        collections. Otherwise Python would look at all objects of numba, which takes four fifths of
        the time in which a process ends. Ranks that share cores would take seconds to end.
        """
        if uncaught() is not error:
            self._before(kind, error, trace)
            return
        report = Report.of(error)
        is_held = (
            self._holds
            and len(report.trace) < LONGEST_TEXT
            and all(len(entry) <= LONGEST_LINE for entry in traceback.format_exception(error))
            and not isinstance(error, KeyboardInterrupt)  # the launcher reports a Ctrl-C itself
        )
        if not self._send(replace(report, is_held=is_held)) or not is_held:
            self._before(kind, error, trace)
        gc.freeze()

    def at_exit(self) -> None:
        """Report an exception that the program's own hook has got, or otherwise the lost ranks."""
        error = uncaught()
        if error is not None:
            self._send(Report.of(error))
        elif _lost:
            self._send(Report("", "", "", 0, _lost, they_end=_lost_run))

    def _send(self, report: Report) -> bool:
        """Send the report of this process, once; return whether this call has sent it."""
        pipe, self._pipe = self._pipe, None
        return pipe is not None and pipe.say(report)
