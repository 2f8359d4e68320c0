"""One line on an exception, and the objects that report it to other processes when a rank ends."""

from __future__ import annotations

import sys
import weakref
from typing import Any, Protocol

from cobre_comm.reports.exception_text import text_of


class Ends(Protocol):
    """An object that ends with its rank, by an exception or without one."""

    def _end_by(self, error: BaseException | None) -> None:
        """End, and report the exception to the other ranks."""


living: weakref.WeakSet[Any] = weakref.WeakSet()  # of Ends


def type_of(value: object) -> str:
    """Return the name of an object's class, with its module unless that is ``builtins``.

    A process that multiprocessing has prepared calls the script ``__mp_main__``, not ``__main__``.
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
    """Return a line as UTF-8 of at most ``nbytes`` bytes; three dots end a line that was cut."""
    encoded = line.encode(errors="backslashreplace")
    if len(encoded) <= nbytes:
        return encoded
    return encoded[: nbytes - 3].decode(errors="ignore").encode() + b"..."


def end_all(error: BaseException | None) -> None:
    """End all objects of ``living``, because this rank ends by an exception, or by None."""
    for one in list(living):
        one._end_by(error)


def end_all_at_exit() -> None:
    """End all objects of ``living`` at exit, with the uncaught exception that Python has kept."""
    end_all(getattr(sys, "last_value", None))
