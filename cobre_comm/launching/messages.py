"""Messages of a worker to its launcher on the report pipe: progress, a value, a failure."""

from __future__ import annotations

import contextlib
import pickle
from dataclasses import dataclass
from typing import Any

from cobre_comm.common.report_pipe import Report
from cobre_comm.launching.pickling import dumps


@dataclass(frozen=True)
class Progress:
    """A payload of ``report_progress``."""

    payload: Any


@dataclass(frozen=True)
class Done:
    """The function returned."""

    value: Any
    backend: str
    wall_time_s: float


@dataclass(frozen=True)
class Failed:
    """The function, or the start of its communicator, raised.

    Parameters
    ----------
    report : Report
        What is known of the exception in any case.
    pickled : tuple of bytes
        The exception, and its parts: what pickles of them.
    """

    report: Report
    pickled: tuple[bytes, ...]

    @classmethod
    def of(cls, error: BaseException) -> Failed:
        """Describe an exception."""
        made = (_pickled(value) for value in (error, _parts(error)))
        return cls(Report.of(error), tuple(filter(None, made)))

    def exception(self) -> BaseException:
        """Make the exception again, its traceback as cause.

        An exception that does not pickle, or whose constructor does not take its ``args``, is made
        from its parts. If that fails too, or does not say what the exception said, the result is a
        :class:`RemoteError`.
        """
        for pickled in self.pickled:
            with contextlib.suppress(Exception):  # a missing module, a constructor of others
                made: Any = pickle.loads(pickled)
                error: BaseException = _from_parts(*made) if isinstance(made, tuple) else made
                if Report.of(error).says_the_same(self.report):
                    break
        else:
            error = RemoteError(self.report.error, self.report.text)
        error.__cause__ = RemoteTraceback(self.report.trace)
        return error


def _pickled(value: object) -> bytes | None:
    """Return it pickled, or None: a ``__reduce__`` of others may raise anything."""
    try:
        return dumps(value)
    except Exception:
        return None


def _parts(error: BaseException) -> tuple[Any, ...]:
    """Return class, arguments and attributes; words for an argument that does not pickle."""
    describe = str if len(error.args) == 1 else repr  # as str() of an exception does
    args = [arg if _pickled(arg) else Described(describe(arg)) for arg in error.args]
    return type(error), args, {k: v for k, v in vars(error).items() if _pickled(v)}


def _from_parts(
    kind: type[BaseException], args: list[Any], attributes: dict[str, Any]
) -> BaseException:
    error = kind.__new__(kind, *args)  # the constructor may want other arguments
    error.__dict__.update(attributes)
    return error


class Described(str):
    """The words of an argument that could not be sent."""

    __slots__ = ()
    __repr__ = str.__str__


class RemoteError(RuntimeError):
    """Stands for an exception of a worker whose class cannot be had here.

    Attributes
    ----------
    class_name : str
        Of the exception, with its module.
    text : str
        What it says.
    """

    def __init__(self, class_name: str, text: str) -> None:
        self.class_name = class_name
        self.text = text
        super().__init__(class_name, text)

    def __str__(self) -> str:
        return f"{self.class_name}: {self.text}"


class RemoteTraceback(Exception):
    """The traceback of another process, as text."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text)

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'
