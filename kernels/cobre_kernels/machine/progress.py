"""What a user sees on stderr while kernels are compiled: that, what, and for how long.

On a terminal one line follows the work, function by function. Elsewhere it is a line when
compilation begins. Nothing is written where numba finds everything in its cache.
"""

import contextlib
import sys
import time
from types import SimpleNamespace

from numba.core import event

MESSAGE = "cobre-comm: compiling kernels (once per machine and version)..."
_CLEAR = "\r\x1b[K"


class _Line(event.Listener):
    def __init__(self, announced, lock):
        self._announced, self._lock = announced, lock
        self._began = time.monotonic()

    def on_start(self, event):
        """Name the function whose compilation begins."""
        if sys.stderr.isatty():
            name = event.data["dispatcher"].py_func.__qualname__.strip("_")
            seconds = time.monotonic() - self._began
            self._write(f"{_CLEAR}{MESSAGE} {seconds:.0f} s: {name}")
        with self._lock:
            if not self._announced.value and not sys.stderr.isatty():
                self._write(f"{MESSAGE}\n")
            self._announced.value = 1

    def on_end(self, event):
        """Leave the line as it is."""

    def end(self):
        """Say how long it took, where the line was rewritten until now."""
        if self._announced.value and sys.stderr.isatty():
            self._write(f"{_CLEAR}{MESSAGE} {time.monotonic() - self._began:.1f} s\n")

    @staticmethod
    def _write(text):
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
            sys.stderr.write(text)
            sys.stderr.flush()


@contextlib.contextmanager
def progress(announced=None, lock=None):
    """Show what is compiled meanwhile.

    Processes that compile together share ``announced``, a value that is 0 at first, and its lock.
    """
    line = _Line(announced or SimpleNamespace(value=0), lock or contextlib.nullcontext())
    with event.install_listener("numba:compile", line):
        try:
            yield
        finally:
            line.end()
