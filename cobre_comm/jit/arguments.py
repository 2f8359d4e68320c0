"""Checks of the types of arguments in ``@njit`` code, made while the user's code is compiled.

A type cannot tell everything: an ``A`` layout may be contiguous. That is tested at run time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import register_jitable
from numba.np.numpy_support import as_dtype


def array_problem(operation: str, name: str, array: Any, *, writable: bool) -> str:
    """Return the problem with the type of an argument, or an empty string."""
    if not isinstance(array, types.Array):
        return f"{operation}: {name} must be a NumPy array, got {array}"
    try:
        dtype = as_dtype(array.dtype)
    except NotImplementedError:
        return f"{operation}: {name} has a dtype that cannot be moved ({array.dtype})"
    if dtype.hasobject or dtype.itemsize == 0:
        return f"{operation}: {name} must have a fixed-size dtype, got {dtype}"
    if writable and not array.mutable:
        return f"{operation}: {name} is read-only; pass a writable array"
    return ""


def pair_problem(operation: str, send: Any, recv: Any) -> str:
    """Return the problem with the types of send and recv, or an empty string."""
    problem = array_problem(operation, "send", send, writable=False)
    problem = problem or array_problem(operation, "recv", recv, writable=True)
    if not problem and as_dtype(send.dtype) != as_dtype(recv.dtype):
        problem = (
            f"{operation}: send and recv must have the same dtype, got {send.dtype} and "
            f"{recv.dtype}"
        )
    return problem


def error_class(problem: str) -> type[Exception]:
    """Return the class of exception that Python raises for that problem."""
    return ValueError if "read-only" in problem else TypeError


def is_integer(argument: Any) -> bool:
    """Tell whether an argument is an integer or a ReduceOp, and not a bool."""
    if isinstance(argument, types.Omitted):
        return True  # our own defaults
    if isinstance(argument, (types.Boolean, types.BooleanLiteral)):
        return False
    return isinstance(argument, (types.Integer, types.IntEnumMember, int))


def integer_reader(argument: Any) -> Any:
    """Return a function that turns a value of this integer type into an int64."""
    if isinstance(argument, types.IntEnumMember):
        return register_jitable(lambda value: np.int64(value.value))
    return register_jitable(lambda value: np.int64(value))


@register_jitable
def _always(array):
    return True


@register_jitable
def _strides_are_contiguous(array):
    expected = array.itemsize
    for axis in range(array.ndim - 1, -1, -1):
        if array.shape[axis] > 1 and array.strides[axis] != expected:
            return False
        expected *= array.shape[axis]
    return True


def contiguity(array: Any) -> Any:
    """Return the run-time test that an array of this type still needs."""
    return _always if array.layout == "C" else _strides_are_contiguous


@register_jitable
def _same(table):
    return table


@register_jitable
def _copied(table):
    copy = np.empty(len(table), dtype=np.int64)
    for i in range(len(table)):
        copy[i] = table[i]
    return copy


def table(argument: Any) -> Any:
    """Return a function that makes an int64 vector of this type, or None."""
    if isinstance(argument, types.Array):
        if argument.ndim != 1 or not isinstance(argument.dtype, types.Integer):
            return None
        is_ready = argument.dtype == types.int64 and argument.layout == "C"
        return _same if is_ready else _copied
    element = getattr(argument, "dtype", None)
    is_sequence = isinstance(argument, (types.UniTuple, types.List, types.ListType))
    return _copied if is_sequence and isinstance(element, types.Integer) else None
