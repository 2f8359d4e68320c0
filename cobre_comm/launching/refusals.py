"""Errors that ``launch`` raises before it starts anything; each message names a remedy."""

from __future__ import annotations

import functools
import multiprocessing
import os
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

from cobre_comm.launching.worker import is_worker


def check_not_nested() -> None:
    """Raise ``RuntimeError`` in a worker, which has its communicator already."""
    if is_worker():
        raise RuntimeError("launch cannot be called inside a worker of another launch")
    # multiprocessing's own mark of a child that is still importing the parent's main module.
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RuntimeError(
            "a worker called launch while it imported this script; put the call of launch under "
            'if __name__ == "__main__":'
        )


def check_start_method() -> None:
    """Raise ``RuntimeError`` in a program that forks."""
    if multiprocessing.get_start_method(allow_none=True) == "fork":
        raise RuntimeError(
            "this program uses multiprocessing's start method 'fork', which breaks compiled code "
            "and threads in workers; choose 'spawn' (multiprocessing.set_start_method) for launch"
        )


def check_importable(fn: Callable[..., Any]) -> None:
    """Refuse what a new process could not find by its name."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    name = getattr(fn, "__qualname__", repr(fn))
    advice = "define it with def at the top of a .py file and import it from there"
    main = sys.modules["__main__"]
    if getattr(fn, "__module__", None) == "__main__" and not _is_file(main):
        raise ValueError(
            f"workers cannot import {name} from a notebook or an interactive program; {advice}"
        )
    try:
        pickle.dumps(fn)
    except Exception as error:  # PicklingError, AttributeError, TypeError: by Python version
        raise ValueError(f"workers cannot import {name}; {advice} ({error})") from error


def _is_file(main: types.ModuleType) -> bool:
    if getattr(main, "__spec__", None) is not None:  # python -m
        return True
    return os.path.isfile(getattr(main, "__file__", None) or "")  # noqa: PTH113  # "" is no path
