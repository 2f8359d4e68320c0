"""Names of version 0.4 that still work: each use warns, and says which name version 1.0 has.

``OLD_NAMES`` serves Python and ``@njit`` code. Version 1.0 will lack these names and this file.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

# Each old name and its new name, by the variable that usually holds the object, or by module.
OLD_NAMES: dict[str, dict[str, str]] = {
    "comm": {"block": "share", "enter": "enter_phase", "layout": "shares"},
    "region": {"block": "part"},
    "work": {"costs": "measured_costs", "first": "start", "last": "stop"},
    "random": {"stream": "key"},
}
# Each old name of an environment variable, and the new name.
OLD_VARIABLES = {
    "COBRE_LEADERS": "COBRE_COMM_LEADERS",
    "COBRE_COMM_LATE_SECS": "COBRE_TEST_LATE_SECS",
    "COBRE_COMM_PORTABLE_WAIT": "COBRE_TEST_PORTABLE_WAIT",
    "COBRE_MPI_PRETEND_NODES": "COBRE_TEST_PRETEND_NODES",
    "COBRE_TCP_PRETEND_NODES": "COBRE_TEST_PRETEND_NODES",
}
BEGINNING = "cobre_comm 1.0"  # of every warning, so that a filter finds all warnings
# Frames of these packages are not the user's. ``abc`` makes the classes with abstract methods.
_NOT_USERS = (__name__.partition(".")[0], "abc")


def warn(rest: str) -> None:
    """Warn at the line of the user's program; the warning is ``BEGINNING``, then ``rest``.

    While numba compiles, the user's line is in the function under compilation. numba knows this
    line, and writes it into warnings of numba's own class, a subclass of ``DeprecationWarning``.
    """
    level = 1 + _count(sys._getframe(1), *_NOT_USERS)
    told: Warning = DeprecationWarning(f"{BEGINNING} {rest}")
    user = sys._getframe(level)
    if _module(user).startswith("numba."):
        asking = sys._getframe(level + _count(user, "numba.core.typing"))
        if _module(asking) != "numba.core.typeinfer.":
            return  # numba asks again about code that it has typed
        numba: Any = sys.modules["numba"]
        told = numba.NumbaDeprecationWarning(str(told), highlighting=False)
    warnings.warn(told, stacklevel=level + 1)


def _count(frame: Any, *packages: str) -> int:
    """Return how many frames in a row, from ``frame`` outwards, belong to these packages."""
    count = 0
    while frame is not None and _module(frame).startswith(tuple(f"{p}." for p in packages)):
        frame, count = frame.f_back, count + 1
    return count


def _module(frame: Any) -> str:
    """Return the name of a frame's module, with a dot behind it."""
    return f"{frame.f_globals.get('__name__')}."


def new_name(holder: str, name: str) -> str:
    """Return the new name of an attribute, and warn if ``name`` is the old one."""
    new = OLD_NAMES.get(holder, {}).get(name)
    if new is None:
        return name
    warn(f"has {holder}.{new} in place of {holder}.{name}")
    return new


class OldName:
    """An attribute with an old name: it warns, and returns the attribute with the new name."""

    def __init__(self, holder: str, name: str) -> None:
        self._names = holder, name

    def __get__(self, value: object, owner: type) -> Any:
        return getattr(owner if value is None else value, new_name(*self._names))


def keep(cls: type, holder: str) -> None:
    """Give a class the old names of its objects.

    A subclass that another distribution wrote for 0.4 may have a method under its old name. Then
    the method gets the new name too, because this package calls the method by the new name.
    """
    for old, new in OLD_NAMES.get(holder, {}).items():
        own = vars(cls).get(old)
        if own is None:
            setattr(cls, old, OldName(holder, old))
        elif new not in vars(cls):
            warn(f"calls {cls.__name__}.{new} in place of {cls.__name__}.{old}")
            setattr(cls, new, own)


def also_by_position(*names: str) -> Callable[[Function], Function]:
    """Let callers pass keyword-only parameters by position, in this order, with a warning."""

    def decorate(function: Function) -> Function:
        code = cast(Any, function).__code__
        first: int = code.co_argcount

        @functools.wraps(function)
        def call(*values: Any, **keywords: Any) -> Any:
            named = dict(zip(names, values[first:], strict=False))
            if named and len(values) == first + len(named):
                form = ", ".join(f"{name}=..." for name in named)
                warn(f"takes {' and '.join(named)} of {code.co_name} by name alone: {form}")
                return function(*values[:first], **named, **keywords)
            return function(*values, **keywords)

        return cast(Function, call)

    return decorate


def warn_of_variable(name: str) -> None:
    """Warn if the name of a variable of the environment is an old one."""
    if name in OLD_VARIABLES:
        warn(f"reads {OLD_VARIABLES[name]} in place of {name}")
