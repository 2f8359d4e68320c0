"""Errors that ``launch`` raises before it starts anything; each message says what to do."""

from __future__ import annotations

import functools
import inspect
import multiprocessing
from collections.abc import Callable, Mapping
from typing import Any

from cobre_comm.arguments.mistakes import LAUNCH, explained
from cobre_comm.launching.pickling import can_send_by_value, dumps, main_is_file
from cobre_comm.launching.reporting import is_rank


def check_not_nested() -> None:
    """Raise ``RuntimeError`` in a worker, because it has a communicator already."""
    if is_rank():
        raise RuntimeError(
            "launch cannot be called by a rank of another launch; ranks work in groups after "
            "comm.split, and start another job by `cobre-comm run` in a subprocess"
        )
    # multiprocessing marks a child so while the child imports the parent's main module.
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RuntimeError(
            "a worker called launch while it imported this script; put the call of launch under "
            'if __name__ == "__main__":'
        )


def check_call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise ``TypeError`` if a call does not fit the function, or would not run its code."""
    name = getattr(fn, "__name__", repr(fn))
    if inspect.iscoroutinefunction(fn):
        raise TypeError(
            f"{name} is an async function, which launch does not await: give launch a function "
            f"with def that calls asyncio.run({name}(comm))"
        )
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise TypeError(
            f"{name} is a generator function, of which a call runs nothing: let it return a list "
            "in place of yield, or report what it has by report_progress"
        )
    try:
        signature = inspect.signature(fn, follow_wrapped=False)  # that of ``fn`` itself
    except (TypeError, ValueError):  # a function in C may have none
        return
    try:
        signature.bind(None, *args, **kwargs)
    except TypeError as error:
        given = ", *args" * bool(args) + ", **kwargs" * bool(kwargs)
        raise TypeError(
            f"launch calls {name}(comm{given}), and that does not fit {name}{signature}: {error}; "
            "the first parameter is the communicator; args and kwargs have the others"
        ) from None


def check_importable(fn: Callable[..., Any]) -> None:
    """Raise ``ValueError`` if a new process can get the function neither by name nor by value."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    name = getattr(fn, "__qualname__", repr(fn))
    advice = "define it with def at the top of a .py file and import it from there"
    if not can_send_by_value():
        advice += ", or install cloudpickle (pip install 'cobre-comm[notebook]')"
        if getattr(fn, "__module__", None) == "__main__" and not main_is_file():
            said = (
                f"workers cannot import {name} from a notebook or an interactive program; {advice}"
            )
            raise explained(ValueError(said), LAUNCH)
    try:
        dumps(fn)
    except Exception as error:  # the class depends on Python's version
        said = f"workers cannot import {name}; {advice} ({error})"
        raise explained(ValueError(said), LAUNCH) from error
