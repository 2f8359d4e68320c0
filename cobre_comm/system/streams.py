"""The standard streams, which a program may have closed, replaced or never had.

``sys.stderr`` is None in a process that began with descriptor 2 closed. Else it is whatever the
program has put there. So a line of the library may be lost; no other harm is done.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys

STDIN, STDOUT, STDERR = 0, 1, 2


def write_error(text: str) -> None:
    """Write lines to ``sys.stderr``, if anybody can read them."""
    with contextlib.suppress(Exception):  # of any stream that a program has put there
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def flush_output() -> None:
    """Flush ``sys.stdout`` and ``sys.stderr``, as far as they can be."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def write_whole_lines() -> None:
    """Have ``sys.stdout`` write a line at once, because other processes write there too.

    With ``PYTHONUNBUFFERED`` it would else write each part of a line by itself.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True, write_through=False)


def open_standard() -> None:
    """Open /dev/null as stdin, stdout or stderr, if it is closed; else a pipe gets its number."""
    for descriptor in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


def take_stdin() -> int:
    """Return a duplicate of stdin, and put an empty stdin in its place."""
    taken, null = os.dup(STDIN), os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, STDIN)
    os.close(null)
    return taken
