"""Checks of arguments, which the methods of several classes have in common."""

from __future__ import annotations

import operator

import numpy as np

from cobre_comm.arguments.mistakes import INTEGER, explained


def describe(value: object) -> str:
    """Return an argument in a few words, for a message about it."""
    if isinstance(value, np.ndarray):
        what = "an array" if type(value) is np.ndarray else f"a {type(value).__name__}"
        return f"{what} of shape {value.shape} and dtype {value.dtype}"
    return f"{type(value).__name__} {value!r}"[:120]


def as_integer(operation: str, name: str, value: object) -> int:
    """Return a true integer (not a bool, not a float) as ``int``, or raise TypeError."""
    if not isinstance(value, (bool, np.bool_)):
        try:
            return operator.index(value)  # type: ignore[arg-type]  # the call finds out
        except TypeError:
            pass
    wrong = TypeError(f"{operation}: {name} must be an integer, got {describe(value)}")
    raise explained(wrong, INTEGER)
