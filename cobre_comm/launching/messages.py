"""Messages of a worker to its launcher on the report pipe: progress, a value, a failure."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

from cobre_comm.report_pipe import Report


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
    report : Report
        What is known of the exception in any case.
    pickled : bytes or None
        The exception, if it pickles.
    """

    report: Report
    pickled: bytes | None

    @classmethod
    def of(cls, error: BaseException) -> Failed:
        """Describe an exception."""
        try:
            pickled = pickle.dumps(error)
        except Exception:  # a __reduce__ of others may raise anything
            pickled = None
        return cls(Report.of(error), pickled)

    def exception(self) -> BaseException:
        """Make the exception again, its traceback as cause; a RuntimeError if that fails."""
        error: object = None
        if self.pickled is not None:
            try:
                error = pickle.loads(self.pickled)
            except Exception:  # a constructor that does not take its own args, a missing module
                error = None
        if not isinstance(error, BaseException):
            error = RuntimeError(f"{self.report.error}: {self.report.text}")
        error.__cause__ = RemoteTraceback(self.report.trace)
        return error


class RemoteTraceback(Exception):
    """The traceback of another process, as text."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text)

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'
