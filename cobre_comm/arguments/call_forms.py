"""The form of a call of each method, for the error when a call does not fit it.

A *form* is a call as a user writes it, such as ``comm.broadcast(buf, root=0)``.
"""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar, cast

from cobre_comm.reports.tracebacks import is_told

Class = TypeVar("Class", bound=type)
Function = TypeVar("Function", bound=Callable[..., Any])


def form_problem(
    owner: str, function: Callable[..., Any], given: int, named: Collection[str]
) -> str:
    """Return the form of a call, and the arguments that it lacks or has too many; "" if none.

    ``owner`` is the variable before the dot, ``comm`` or ``region``, and ``function`` the method as
    its class has it; "" is that of a function. ``given`` counts the arguments by position, without
    ``self``; ``named`` are the names of the arguments by keyword.
    """
    parameters = list(inspect.signature(function).parameters.values())[1 if owner else 0 :]
    names = [parameter.name for parameter in parameters]
    by_position = sum(parameter.kind is not parameter.KEYWORD_ONLY for parameter in parameters)
    problems = [_unknown(name, names[given:]) for name in named if name not in names]
    problems += [f"{name} is given twice" for name in named if name in names[:given]]
    if given > by_position:
        where = " by position" if by_position < len(names) else ""
        problems.append(f"it takes {_number(by_position)}{where}, not {given}")
    missing = [
        parameter.name
        for parameter in parameters[given:]
        if parameter.default is parameter.empty and parameter.name not in named
    ]
    if missing:
        problems.append(f"{_listed(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    called = f"{owner}.{function.__name__}" if owner else function.__name__
    form = f"{called}({', '.join(map(_written, parameters))})"
    return f"{function.__name__} is called as {form}; {_listed(problems)}" if problems else ""


def _unknown(name: str, free: Sequence[str]) -> str:
    import difflib  # only where something is wrong

    close = difflib.get_close_matches(name, free, 1)
    return f"it has no argument {name!r}" + (f" (did you mean {close[0]}?)" if close else "")


def _number(count: int) -> str:
    return {0: "no arguments", 1: "one argument"}.get(count, f"{count} arguments")


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _written(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return parameter.name
    default = parameter.default
    text = repr(default)
    if isinstance(default, enum.Enum):
        text = f"{type(default).__name__}.{default.name}"
    elif isinstance(default, type):
        text = f"{default.__module__}.{default.__name__}"
    return f"{parameter.name}={text}"


def tells_forms(owner: str, *, quick: Collection[str] = ()) -> Callable[[Class], Class]:
    """Let errors of public methods show the call alone: its form, and the line of the user.

    Where the arguments do not fit, Python's own error would name a class that the user does not
    know. A method in ``quick`` is left as it is, for speed, and shows the line of the user itself.
    """

    def decorate(cls: Class) -> Class:
        for name, method in list(vars(cls).items()):
            is_public = inspect.isfunction(method) and not name.startswith("_")
            if is_public and name not in quick:
                setattr(cls, name, _telling(owner, method))
        return cls

    return decorate


def tells_form(function: Function) -> Function:
    """Let errors of a public function show the call alone, likewise."""
    return cast(Function, _telling("", function))


def _telling(owner: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*values: Any, **keywords: Any) -> Any:
        try:
            return function(*values, **keywords)
        except Exception as error:
            if isinstance(error, TypeError):
                given = len(values) - bool(owner)
                problem = form_problem(owner, function, given, keywords)
                if problem:
                    raise TypeError(problem) from None
            if is_told(error):
                error.__traceback__ = None
                raise error
            raise

    return call
