"""The output of one rank, as whole lines that begin with the rank's number.

A line ends at LF, CR LF or CR (progress bars). Only whole lines are written to a file or a pipe. On
a terminal, an unfinished line is shown after a short while, because it may be a prompt. If another
rank writes after that, its text begins on a new line.
"""

from __future__ import annotations

import re
import time

from cobre_comm.processes.loop import NEVER
from cobre_comm.run.output.interrupts import Sieve
from cobre_comm.run.output.log_file import LogFile
from cobre_comm.run.output.outlet import Outlet

LONGEST_LINE_BYTES = 4 * 2**20  # a longer line is cut
TAIL_BYTES = 2**16  # the end that is kept for the final report
PARTIAL_AFTER_S = 0.05
ERASE_LINE = b"\x1b[2K"
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n)|[^\r\n]+\r?")
_COLOURS = (36, 33, 32, 35, 34, 31)


class Screen:
    """The state of the terminal's last line, shared by all streams that write to the terminal."""

    def __init__(self) -> None:
        self.unfinished: Stream | None = None  # the stream that wrote the line, if it is unfinished
        self.overwritable: Stream | None = None  # the stream that wrote the line, if it ends in \r


class Stream:
    """The stdout or stderr of one rank.

    Each line begins with ``prefix``, and all streams of the job share ``screen``. ``log`` gets all
    bytes as they are, but only whole lines, because both streams of a rank share its file and must
    not cut each other's lines.
    """

    def __init__(
        self, outlet: Outlet, prefix: bytes, screen: Screen, log: LogFile | None = None
    ) -> None:
        self.outlet = outlet
        self._log = log
        self.tail = b""  # the last ``TAIL_BYTES`` bytes
        self.is_muted = False  # whether further bytes only go to ``tail`` and ``log``
        self.sieve = Sieve()  # takes tracebacks of Ctrl-C out of the lines that are shown
        self._prefix = prefix
        self._screen = screen
        self._partial = b""
        self._partial_since = 0.0

    @property
    def show_partial_at(self) -> float:
        """The time at which the unfinished line is to be shown on a terminal, or NEVER."""
        if self._partial and self.outlet.is_terminal:
            return self._partial_since + PARTIAL_AFTER_S
        return NEVER

    def feed(self, data: bytes) -> None:
        """Take bytes of the rank, and queue the lines that are whole."""
        self.tail = (self.tail + data)[-TAIL_BYTES:]
        text = self._partial + data
        # A \r at the end may be the first half of \r\n.
        end = max(text.rfind(b"\n"), text.rfind(b"\r", 0, -1)) + 1
        self._partial, self._partial_since = text[end:], time.monotonic()
        if end:
            self._record(text[:end])
            self._emit(self.sieve.sift(text[:end]))
        if len(self._partial) > LONGEST_LINE_BYTES:
            self.finish()

    def show_partial(self) -> None:
        """Show the unfinished line as it is."""
        text, self._partial = self._partial, b""
        self._record(text)
        self._emit(text)
        if text.endswith(b"\r"):
            self._screen.overwritable = self
        else:
            self._screen.unfinished = self

    def finish(self) -> None:
        """Queue the unfinished line, with a newline at its end."""
        self._emit(self.sieve.rest())
        if self._partial:
            text, self._partial = self._partial, b""
            self._record(text)
            self._emit(text if text.endswith(b"\r") else text + b"\n")
        elif self._screen.unfinished is self:
            self._screen.unfinished = None
            self.outlet.put(b"\n")

    def _record(self, text: bytes) -> None:
        if self._log is not None:
            self._log.write(text)

    def _emit(self, text: bytes) -> None:
        """Queue whole lines, or an unfinished line that is to be shown."""
        if self.is_muted or not text:
            return
        screen, first = self._screen, b""
        if screen.unfinished is self:
            first = text.splitlines(keepends=True)[0]
            text = text.removeprefix(first)
        elif screen.unfinished is not None:
            screen.unfinished.outlet.put(b"\n")
        elif screen.overwritable not in (None, self):
            self.outlet.put(ERASE_LINE)
        screen.unfinished = None
        ends_in_cr = self.outlet.is_terminal and (text or first).endswith(b"\r")
        screen.overwritable = self if ends_in_cr else None
        self.outlet.put(first + self._with_prefix(text))

    def _with_prefix(self, text: bytes) -> bytes:
        if not self._prefix or not text:
            return text
        if b"\r" in text:
            return _LINE.sub(lambda found: self._prefix + found[0], text)
        body = text[:-1].replace(b"\n", b"\n" + self._prefix)  # ten times as fast as line by line
        return self._prefix + body + text[-1:]


def rank_prefix(rank: int, outlet: Outlet, *, colour: bool) -> bytes:
    """Return ``[rank] ``, in the rank's colour on a terminal."""
    text = f"[{rank}] "
    if colour and outlet.is_terminal:
        text = f"\x1b[{_COLOURS[rank % len(_COLOURS)]}m{text}\x1b[0m"
    return text.encode()
