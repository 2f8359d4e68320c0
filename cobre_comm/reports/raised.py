"""Puts an exception into one line, and keeps the objects that report it when this rank ends."""

from __future__ import annotations

import sys
import weakref
from typing import Any

from cobre_comm.reports.exception_text import text_of

_FORGETS_ITS_CALLER = 0x20 | 0x80 | 0x200  # flags CO_* of inspect: generators and coroutines
living: weakref.WeakSet[Any] = weakref.WeakSet()  # communicators, which end when their rank ends


def type_of(value: object) -> str:
    """Return the name of an object's class, with its module unless that is ``builtins``.

    In a process that multiprocessing has prepared, the script is ``__mp_main__``, not ``__main__``.
    """
    kind = type(value)
    module = "__main__" if kind.__module__ == "__mp_main__" else kind.__module__
    return f"{module}.{kind.__qualname__}".removeprefix("builtins.")


def line_of(error: BaseException) -> str:
    """Return the type of an exception and the first line of its text."""
    text = text_of(error).strip()
    first = text.splitlines()[0].rstrip() if text else ""
    return f"{type_of(error)}: {first}" if first else type_of(error)


def cut(line: str, nbytes: int) -> bytes:
    """Return a line as UTF-8, cut to at most ``nbytes`` bytes; a cut line ends with three dots."""
    encoded = line.encode(errors="backslashreplace")
    if len(encoded) <= nbytes:
        return encoded
    return encoded[: nbytes - 3].decode(errors="ignore").encode() + b"..."


def end_all(error: BaseException | None) -> None:
    """End all objects of ``living``, because this rank ends, by an exception or without one."""
    for one in list(living):
        one._end_by(error)


def uncaught() -> BaseException | None:
    """Return the exception that ends this process, which Python keeps; None if there is none.

    Consoles, debuggers and pytest keep exceptions that they have caught in ``sys.last_value`` too,
    and some show these exceptions by ``sys.excepthook``. An exception that nothing has caught has
    left the outermost frame of the program, which no other frame has called. In Python's own
    console such an exception ends a line, but not the process.
    """
    trace = getattr(sys, "last_traceback", None)
    if trace is None or trace.tb_frame.f_back is not None:
        return None
    code = trace.tb_frame.f_code
    is_console = hasattr(sys, "ps1") and code.co_filename.startswith("<stdin>")
    if is_console or code.co_flags & _FORGETS_ITS_CALLER:
        return None
    return getattr(sys, "last_value", None)


def end_all_at_exit() -> None:
    """End all objects of ``living`` at exit, with the uncaught exception that Python has kept."""
    end_all(uncaught())
