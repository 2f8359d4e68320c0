"""Lines on stderr that tell the user of compilation: that it goes on, and how long it takes.

On a terminal one line follows the work: the seconds, and the function under way. Elsewhere there is
a line when compilation begins, and one when it has ended. Nothing is written where numba finds
everything in its cache.
"""

import contextlib
import os
import shutil
import sys
import threading
import time
from types import SimpleNamespace

from cobre_kernels.machine.numba_internals import event

MESSAGE = "cobre-comm: compiling kernels (once per machine and version)..."
_CLEAR = "\r\x1b[K"
_PERIOD_S = 0.5  # of the seconds on the line


class Line(event.Listener):
    """The line about one compilation, which several processes may share."""

    def __init__(self, announced, lock):
        self._announced, self._lock = announced, lock
        self._began = time.monotonic()
        self._pid = os.getpid()
        self._is_terminal = False
        with contextlib.suppress(Exception):  # None, closed, or any object of the program's
            self._is_terminal = sys.stderr.isatty()
        self._name = ""
        self._clock = None
        self._ended = threading.Event()

    def on_start(self, event):
        """Name the function whose compilation begins."""
        with self._lock:
            is_first, self._announced.value = not self._announced.value, 1
        if not self._is_terminal:
            if is_first:
                self._write(f"{MESSAGE}\n")
        elif os.getpid() == self._pid:  # in a forked process there is no clock
            self._name = event.data["dispatcher"].py_func.__qualname__.strip("_")
            self._show()
            self.start_clock()

    def on_end(self, event):
        """Leave the line as it is."""

    def start_clock(self):
        """Have a thread show the seconds, also while one function takes long."""
        if self._is_terminal and self._clock is None:
            self._ended.clear()
            self._clock = threading.Thread(target=self._run_clock, daemon=True)
            self._clock.start()

    def stop_clock(self):
        """End the thread, for example before a fork."""
        if self._clock is not None:
            self._ended.set()
            self._clock.join()
            self._clock = None

    def _run_clock(self):
        while not self._ended.wait(_PERIOD_S):
            if self._announced.value:
                self._show()

    def _show(self):
        seconds = time.monotonic() - self._began
        text = f"{MESSAGE} {seconds:.0f} s {self._name}"
        self._write(_CLEAR + text[: shutil.get_terminal_size().columns - 1])

    def end(self):
        """Write how long compilation took, if there was any."""
        self.stop_clock()
        if self._announced.value:
            seconds = time.monotonic() - self._began
            begin = f"{_CLEAR}{MESSAGE}" if self._is_terminal else "cobre-comm: kernels compiled in"
            self._write(f"{begin} {seconds:.1f} s\n")

    @staticmethod
    def _write(text):
        with contextlib.suppress(Exception):  # nobody can read it
            sys.stderr.write(text)
            sys.stderr.flush()


@contextlib.contextmanager
def progress(announced=None, lock=None):
    """Show on stderr the functions that are compiled in this context.

    Processes that compile together share ``announced``, a value that is 0 at first, and its lock.
    """
    line = Line(announced or SimpleNamespace(value=0), lock or contextlib.nullcontext())
    with event.install_listener("numba:compile", line):
        try:
            yield line
        finally:
            line.end()
