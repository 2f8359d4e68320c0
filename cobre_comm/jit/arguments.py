"""Checks of the types of arguments in ``@njit`` code, made while the user's code is compiled.

A type cannot tell everything: an ``A`` layout may be contiguous. That is tested at run time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cobre_kernels.collective.calls import Refusal
from cobre_kernels.machine.kernel import run
from cobre_kernels.machine.numba_internals import as_dtype
from numba import types
from numba.extending import intrinsic, register_jitable

LARGEST = np.uint64(2**63 - 1)


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
    """Return a function that turns a value of this integer type into an int64.

    A value that does not fit becomes the largest int64, which is no root and no ReduceOp.
    """
    if isinstance(argument, types.IntEnumMember):
        return register_jitable(lambda value: np.int64(value.value))
    if argument == types.uint64:
        return register_jitable(lambda value: np.int64(min(value, LARGEST)))
    return register_jitable(lambda value: np.int64(value))


@register_jitable
def _always(array):
    return True


@register_jitable
def _strides_are_contiguous(array):
    if array.size == 0:
        return True  # as NumPy says
    expected = array.itemsize
    for axis in range(array.ndim - 1, -1, -1):
        if array.shape[axis] > 1 and array.strides[axis] != expected:
            return False
        expected *= array.shape[axis]
    return True


def contiguity(array: Any) -> Any:
    """Return the run-time test that an array of this type still needs."""
    return _always if array.layout == "C" else _strides_are_contiguous


def table_problem(operation: str, name: str, argument: Any) -> tuple[str, type[Exception]]:
    """Return the problem with the type of counts or displacements, and the error that it is."""
    elements = _elements(argument)
    if elements is None or any(_elements(e) is not None for e in elements):
        problem = f"{name} must be one-dimensional, one integer per rank, got {argument}"
        return f"{operation}: {problem}", ValueError
    if not all(isinstance(e, types.Integer) for e in elements):
        return f"{operation}: {name} must be integers, got {argument}", TypeError
    return "", ValueError


def _elements(argument: Any) -> list[Any] | None:
    """Return the types of the elements of a sequence; None if the type is no sequence."""
    if isinstance(argument, types.BaseTuple):
        return list(argument)
    if isinstance(argument, types.Array):
        return [argument.dtype] if argument.ndim == 1 else None
    is_sequence = isinstance(argument, (types.List, types.ListType, types.RangeType))
    return [argument.dtype] if is_sequence else None


@register_jitable
def _same(table):
    return table, True


@register_jitable
def _copied(table):
    copy = np.empty(len(table), dtype=np.int64)
    for i in range(len(table)):
        copy[i] = table[i]
    return copy, True


@register_jitable
def _copied_if_it_fits(table):
    copy, fits = np.empty(len(table), dtype=np.int64), True
    for i in range(len(table)):
        copy[i] = table[i]
        fits = fits and copy[i] >= 0
    return copy, fits


@register_jitable
def _empty(table):
    return np.empty(0, dtype=np.int64), True


@intrinsic
def as_int64(typingctx, table):
    """Turn integers of different types into int64, and tell whether all of them fit."""
    integers = types.UniTuple(types.int64, len(table))
    result = types.Tuple((integers, types.boolean))

    def codegen(context, builder, signature, args):
        values, fits = [], context.get_constant(types.boolean, True)
        for number, kind in enumerate(table):
            value = builder.extract_value(args[0], number)
            values.append(context.cast(builder, value, kind, types.int64))
            if kind == types.uint64:
                is_small = builder.icmp_signed(">=", value, value.type(0))
                fits = builder.and_(fits, builder.zext(is_small, fits.type))
        return context.make_tuple(
            builder, result, [context.make_tuple(builder, integers, values), fits]
        )

    return result(table), codegen


@register_jitable
def _unified(table):
    integers, fits = as_int64(table)
    return _copied(integers)[0], fits


def blocks_problem(operation: str, arguments: Any) -> tuple[str, type[Exception]]:
    """Return the problem with the types of send, recv, counts and displs, and its error."""
    send, recv, counts, displs = arguments
    problem = pair_problem(operation, send, recv)
    error = error_class(problem)
    for name, argument in (("counts", counts), ("displs", displs)):
        if not problem:
            problem, error = table_problem(operation, name, argument)
    return problem, error


def table(argument: Any) -> Any:
    """Return a function from a table of this type to an int64 vector, and whether all fit."""
    if isinstance(argument, types.BaseTuple) and not isinstance(argument, types.UniTuple):
        return _unified if len(argument) else _empty
    if argument.dtype == types.int64 and getattr(argument, "layout", "") == "C":
        return _same
    return _copied_if_it_fits if argument.dtype == types.uint64 else _copied


@register_jitable
def refused(record, operation, outcome):
    """Refuse a call that reaches no entry; a thread that cannot raise breaks the communicator."""
    run(record.refuse, record, Refusal(operation, outcome, 0))
