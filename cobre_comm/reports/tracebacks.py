"""Tracebacks of errors that a user gets: the last line shown is the user's own.

When an error leaves this package, the frames of the package that found the mistake are removed from
its traceback, because they say nothing to the user. The causes of the error keep their frames.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any, TypeVar, cast

from cobre_comm.errors import Explained

Class = TypeVar("Class", bound=type)
Function = TypeVar("Function", bound=Callable[..., Any])
PACKAGE = __name__.partition(".")[0] + "."


def is_told(error: Exception) -> bool:
    """Tell whether this package has raised an error with a sentence that explains it.

    Other errors need their frames: an error of another kind is a fault of this package, and if a
    function of the user has raised the error, the frames of that function explain it.
    """
    trace = error.__traceback__
    if trace is None or not isinstance(error, (Explained, TypeError, ValueError, PermissionError)):
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    return str(trace.tb_frame.f_globals.get("__name__")).startswith(PACKAGE)


def tells_callers(function: Function) -> Function:
    """Remove all frames of this package but one from the errors of a public function."""

    @functools.wraps(function)
    def call(*values: Any, **keywords: Any) -> Any:
        try:
            return function(*values, **keywords)
        except Exception as error:
            if is_told(error):
                error.__traceback__ = None
                raise error
            raise

    return cast(Function, call)


def methods_tell_callers(*, quick: Collection[str] = ()) -> Callable[[Class], Class]:
    """Remove all frames of this package but one from the errors of the public methods of a class.

    A method in ``quick`` is left as it is, for speed, and removes its frames itself.
    """

    def decorate(cls: Class) -> Class:
        for name, method in list(vars(cls).items()):
            is_public = inspect.isfunction(method) and not name.startswith("_")
            if is_public and name not in quick:
                setattr(cls, name, tells_callers(method))
        return cls

    return decorate
