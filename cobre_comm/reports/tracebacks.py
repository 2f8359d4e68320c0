"""Tracebacks of errors that a user gets: the user's own line stands next to the error's sentence.

When an error leaves this package, the frames of the package that found the mistake are taken off
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
    """Tell whether this package has raised an error that its sentence explains.

    Other errors need their frames: an error of another kind is a fault of this package, and an
    error that a function of the user has raised is explained by the frames of that function.
    """
    trace = error.__traceback__
    if trace is None or not isinstance(error, (Explained, TypeError, ValueError, PermissionError)):
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    return str(trace.tb_frame.f_globals.get("__name__")).startswith(PACKAGE)


def tells_callers(function: Function) -> Function:
    """Let the errors of a public function have no frames of this package but one."""

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
    """Let the errors of the public methods of a class have no frames of this package but one.

    A method in ``quick`` is left as it is, for speed, and drops its frames itself.
    """

    def decorate(cls: Class) -> Class:
        for name, method in list(vars(cls).items()):
            is_public = inspect.isfunction(method) and not name.startswith("_")
            if is_public and name not in quick:
                setattr(cls, name, tells_callers(method))
        return cls

    return decorate
