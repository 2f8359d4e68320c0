"""What a worker tells the parent, through an inherited pipe: progress, a value, or a failure."""

from __future__ import annotations

import pickle
import threading
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any


@dataclass(frozen=True)
class Progress:
    """A payload of ``report_progress``."""

    payload: Any


@dataclass(frozen=True)
class Done:
    """The function returned; only rank 0's value travels."""

    value: Any
    backend: str
    wall_time_s: float


@dataclass(frozen=True)
class Failed:
    """The function, or the start of its communicator, raised.

    Parameters
    ----------
    exit_code : int
        What the process exits with.
    pickled : bytes or None
        The exception, if it pickles.
    description : str
        Its type and text, for when it cannot be made again.
    trace : str
        Its formatted traceback.
    """

    exit_code: int
    pickled: bytes | None
    description: str
    trace: str

    @classmethod
    def of(cls, error: BaseException, exit_code: int) -> Failed:
        """Describe an exception."""
        try:
            pickled = pickle.dumps(error)
        except Exception:  # whatever a foreign __reduce__ raises
            pickled = None
        kind = type(error)
        description = f"{kind.__module__}.{kind.__qualname__}: {error}"
        return cls(exit_code, pickled, description, "".join(traceback.format_exception(error)))

    def exception(self) -> BaseException:
        """Make the exception again, its traceback as cause; a RuntimeError if that fails."""
        error: object = None
        if self.pickled is not None:
            try:
                error = pickle.loads(self.pickled)
            except Exception:  # a constructor that does not take its own args, a missing module
                error = None
        if not isinstance(error, BaseException):
            error = RuntimeError(self.description)
        error.__cause__ = RemoteTraceback(self.trace)
        return error


class RemoteTraceback(Exception):
    """The traceback of another process, as text."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text)

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class Channel:
    """A worker's end of the pipe; threads may share it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def send(self, message: Progress | Done | Failed) -> None:
        """Send a message; what does not pickle raises before anything is sent."""
        data = ForkingPickler.dumps(message)
        with self._lock:
            self._connection.send_bytes(data)


def receive(connection: Connection) -> Progress | Done | Failed:
    """Return the next message; ``EOFError`` or ``OSError`` if the worker has gone."""
    message: Progress | Done | Failed = pickle.loads(connection.recv_bytes())
    return message
