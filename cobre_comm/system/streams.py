"""The standard streams, which a program may have closed, replaced or never had.

``sys.stderr`` is None if the process began with descriptor 2 closed. Otherwise it is whatever the
program has put there. So a line of the library may be lost, but that does no other harm.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys

STDIN, STDOUT, STDERR = 0, 1, 2


def write_error(text: str) -> None:
    """Write lines to ``sys.stderr``, if anybody can read them."""
    with contextlib.suppress(Exception):  # any error of a stream that the program has put there
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def flush_output() -> None:
    """Flush ``sys.stdout`` and ``sys.stderr``, if they can be flushed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def write_whole_lines() -> None:
    """Make ``sys.stdout`` write each line at once, because other processes write there too.

    With ``PYTHONUNBUFFERED``, ``sys.stdout`` would otherwise write each part of a line separately.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True, write_through=False)


def open_standard() -> None:
    """Open /dev/null for each closed standard stream, because a pipe could get its number."""
    for descriptor in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


def terminal_owner(descriptor: int) -> int | None:
    """Return the process group that owns our controlling terminal; None for another descriptor."""
    try:
        return os.tcgetpgrp(descriptor)
    except OSError:
        return None


def take_stdin() -> int:
    """Return a duplicate of stdin, and put an empty stdin in its place."""
    taken, null = os.dup(STDIN), os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, STDIN)
    os.close(null)
    return taken
