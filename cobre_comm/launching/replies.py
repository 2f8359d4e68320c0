"""Messages of a worker to its launcher on the report pipe: progress, a value, a failure."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from cobre_comm.errors import WorkerError
from cobre_comm.launching.interrupt import outcome_of
from cobre_comm.launching.pickling import dumps
from cobre_comm.reports.exception_text import cut
from cobre_comm.reports.raised import type_of
from cobre_comm.reports.report_pipe import Report

if TYPE_CHECKING:
    from cobre_comm.contract.communicator import Communicator

LONGEST_PICKLE = 2**20  # bytes; a rank that sends a message for long looks as if it hangs


@dataclass(frozen=True)
class ProgressReport:
    """A payload of ``report_progress``."""

    payload: Any


@dataclass(frozen=True)
class Done:
    """The function has returned: the returned value, and facts for ``WorkerInfo``."""

    value: Any
    backend: str
    wall_time_s: float
    pid: int


def value_message(comm: Communicator, value: Any, wall_time_s: float) -> bytes:
    """Return the message of a rank with the value that its function has returned.

    ``TypeError`` is raised if the value cannot be pickled.
    """
    try:
        return dumps(Done(value, comm.backend, wall_time_s, os.getpid()))
    except Exception as error:  # code of others, such as a __reduce__, may raise anything
        raise TypeError(
            f"the return value of rank {comm.rank} is a {type_of(value)}, which cannot be sent to "
            f"the parent: {error}"
        ) from error


@dataclass(frozen=True)
class Failed:
    """The function has raised an exception, or its communicator could not be made."""

    report: Report  # type, text and traceback of the exception; these can always be sent
    pickled: tuple[bytes, ...]  # the exception, and its parts, if they can be pickled

    @classmethod
    def of(cls, error: BaseException) -> Failed:
        """Describe an exception."""
        report = Report.of(error)
        whole = None if any(map(_is_long, error.args)) else error
        made = (_pickled(value) for value in (whole, _parts(error)) if value is not None)
        return cls(report, tuple(filter(None, made)))

    def exception(self) -> BaseException:
        """Make the exception again; its cause shows the traceback of the worker.

        If an exception does not pickle, or is long, or has a constructor that does not take its
        ``args``, it is made from its parts. If this fails too, or makes an exception with another
        type or text, the result is a :class:`RemoteError`.
        """
        for pickled in self.pickled:
            error, _ = outcome_of(partial(self._made_of, pickled))
            if error is not None:
                break
        else:
            error = RemoteError(self.report.error, self.report.text)
        error.__cause__ = RemoteTraceback(self.report.trace)
        return error

    def error(self, rank: int, ranks: Iterable[int] = ()) -> WorkerError:
        """Return the ``WorkerError`` of a rank; ``ranks`` are those with the same mistake."""
        inner = self.exception()
        error = WorkerError(rank, self.report.exit_code, inner, ranks)
        error.__cause__ = inner
        return error

    def _made_of(self, pickled: bytes) -> BaseException | None:
        """Return the exception, if it has the type and text of the report; else None."""
        made: Any = pickle.loads(pickled)
        error: BaseException = _from_parts(*made) if isinstance(made, tuple) else made
        return error if Report.of(error).says_the_same(self.report) else None


def message_in(data: bytes) -> Any:
    """Return a message of a rank; a message that cannot be unpickled here counts as a failure."""
    message, error = outcome_of(partial(pickle.loads, data))
    return message if error is None else Failed.of(error)


def exit_code_in(message: Done | Failed | None) -> int:
    """Return the exit code for the last message of a rank: 0 only if it has a value."""
    if isinstance(message, Done):
        return 0
    return (0 if message is None else message.report.exit_code) or 1


def _pickled(value: object) -> bytes | None:
    """Return the value pickled; None if the pickle is too long, or if pickling raises."""
    try:
        pickled = dumps(value)
    except BaseException:
        return None
    return pickled if len(pickled) <= LONGEST_PICKLE else None


def _is_long(value: object) -> bool:
    return isinstance(value, (str, bytes, bytearray)) and len(value) > LONGEST_PICKLE


def _parts(error: BaseException) -> tuple[Any, ...]:
    """Return class, arguments and attributes; an argument that cannot be sent becomes text."""
    args = [_sendable(arg, alone=len(error.args) == 1) for arg in error.args]
    return type(error), args, {k: v for k, v in vars(error).items() if _goes(v)}


def _goes(value: object) -> bool:
    return not _is_long(value) and _pickled(value) is not None


def _sendable(arg: Any, *, alone: bool) -> Any:
    if _goes(arg):
        return arg
    try:
        return Described(cut(str(arg) if alone else repr(arg)))  # as str() of an exception does
    except Exception as failure:
        return Described(f"<{type(arg).__name__}, whose text raised {type(failure).__name__}>")


def _from_parts(
    kind: type[BaseException], args: list[Any], attributes: dict[str, Any]
) -> BaseException:
    error = kind.__new__(kind, *args)  # without the constructor, which may need other arguments
    error.__dict__.update(attributes)
    return error


class Described(str):
    """The words of an argument that could not be sent."""

    __slots__ = ()
    __repr__ = str.__str__


class RemoteError(RuntimeError):
    """Stands for an exception of a worker that cannot be made again here.

    Attributes
    ----------
    class_name : str
        The name of the exception's class, with its module.
    text : str
        The text of the exception.
    """

    def __init__(self, class_name: str, text: str) -> None:
        self.class_name = class_name
        self.text = text
        super().__init__(class_name, text)

    def __str__(self) -> str:
        return f"{self.class_name}: {self.text}"


class RemoteTraceback(Exception):
    """The traceback of another process, as text."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'
