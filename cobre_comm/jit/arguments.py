"""Checks of the types of arguments in ``@njit`` code, made while the user's code is compiled.

Before these checks, numba itself refuses masked arrays, and treats other subclasses of ndarray as
arrays. A type cannot tell everything: an array of layout ``A`` may be contiguous or not. The
compiled code tests such an array when it runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cobre_kernels.collective import status
from cobre_kernels.collective.calls import Refusal
from cobre_kernels.machine.compiling.numba_internals import as_dtype, cgutils
from cobre_kernels.machine.compiling.own_names import own_named
from cobre_kernels.machine.kernel import run
from numba import types
from numba.extending import intrinsic, register_jitable

from cobre_comm.arguments.arrays import OF_MEMORY, OF_REGION, array_remedy
from cobre_comm.arguments.mistakes import COUNTS, DTYPE, INTEGER, LIST, OUTPUT, REGION
from cobre_comm.jit.fields import record_of
from cobre_comm.jit.problems import Problem, WrongValue
from cobre_comm.jit.types import RegionType

LARGEST = np.uint64(2**63 - 1)


def array_problem(operation: str, name: str, array: Any, *, writable: bool) -> Problem | None:
    """Return the problem with the type of an argument, if there is one."""
    what = f"{operation}: {name}"
    if not isinstance(array, types.Array):
        word = REGION if isinstance(array, RegionType) else LIST
        return Problem(f"{what} must be a NumPy array, got {_instead(operation, array)}", word)
    try:
        dtype = as_dtype(array.dtype)
    except NotImplementedError:
        return Problem(f"{what} has a dtype that cannot be moved ({array.dtype})", DTYPE)
    if dtype.hasobject or dtype.itemsize == 0:
        return Problem(f"{what} must have a fixed-size dtype, got {dtype}", DTYPE)
    if writable and not array.mutable:
        return Problem(f"{what} is read-only; pass a writable array", OUTPUT, WrongValue)
    return None


def _instead(operation: str, argument: Any) -> str:
    """Describe an argument that is no array, and say what to pass instead."""
    if isinstance(argument, RegionType):
        return f"{argument.what}; {OF_REGION}"
    has_memory = isinstance(argument, types.Buffer)
    return f"{argument}; {OF_MEMORY if has_memory else array_remedy(operation)}"


def pair_problem(operation: str, send: Any, recv: Any) -> Problem | None:
    """Return the problem with the types of send and recv, if there is one."""
    problem = array_problem(operation, "send", send, writable=False)
    problem = problem or array_problem(operation, "recv", recv, writable=True)
    if problem is None and as_dtype(send.dtype) != as_dtype(recv.dtype):
        said = f"must have the same dtype, got {send.dtype} and {recv.dtype}"
        return Problem(f"{operation}: send and recv {said}", DTYPE)
    return problem


def integer_problem(operation: str, name: str, argument: Any) -> Problem | None:
    """Return the problem with an argument that must be an integer, if there is one."""
    if is_integer(argument):
        return None
    return Problem(f"{operation}: {name} must be an integer, got {argument}", INTEGER)


def is_integer(argument: Any) -> bool:
    """Tell whether an argument is an integer or a ReduceOp, and not a bool."""
    if isinstance(argument, types.Omitted):
        return True  # the default of a parameter of ours, which is an integer
    if isinstance(argument, (types.Boolean, types.BooleanLiteral)):
        return False
    return isinstance(argument, (types.Integer, types.IntEnumMember, int))


def integer_reader(argument: Any) -> Any:
    """Return a function that turns a value of this integer type into an int64.

    If a value does not fit, the function returns the largest int64, which is no root and no
    ReduceOp.
    """
    if isinstance(argument, types.IntEnumMember):
        return _of_member
    return _of_uint64 if argument == types.uint64 else _of_integer


# The next functions belong to the module, and not to an overload, so that numba compiles each of
# them once, and not again for each overload.


@register_jitable
def _of_member(value):
    return np.int64(value.value)


@register_jitable
def _of_uint64(value):
    return np.int64(min(value, LARGEST))


@register_jitable
def _of_integer(value):
    return np.int64(value)


@intrinsic
def _always(typingctx: Any, array: Any) -> Any:
    return types.boolean(array), lambda context, builder, signature, args: cgutils.true_bit


@register_jitable
def _strides_are_contiguous(array):
    if array.size == 0:
        return True  # as NumPy says of such an array
    expected = array.itemsize
    for axis in range(array.ndim - 1, -1, -1):
        if array.shape[axis] > 1 and array.strides[axis] != expected:
            return False
        expected *= array.shape[axis]
    return True


def contiguity(array: Any) -> Any:
    """Return the run-time test that an array of this type still needs."""
    return _always if array.layout == "C" else _strides_are_contiguous


def table_problem(operation: str, name: str, argument: Any) -> Problem | None:
    """Return the problem with the type of counts or displacements, if there is one."""
    if isinstance(argument, RegionType):
        return array_problem(operation, name, argument, writable=False)
    elements = _elements(argument)
    if elements is None or any(_elements(e) is not None for e in elements):
        said = f"{name} must be one-dimensional, one integer per rank, got {argument}"
        return Problem(f"{operation}: {said}", COUNTS, WrongValue)
    if not all(isinstance(e, types.Integer) for e in elements):
        return Problem(f"{operation}: {name} must be integers, got {argument}", COUNTS)
    return None


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


def blocks_problem(operation: str, arguments: Any) -> Problem | None:
    """Return the problem with the types of send, recv, counts and displs, if there is one."""
    send, recv, counts, displs = arguments
    return (
        pair_problem(operation, send, recv)
        or table_problem(operation, "counts", counts)
        or table_problem(operation, "displs", displs)
    )


def table(argument: Any) -> Any:
    """Return a function that converts a table of this type to int64, and tells whether all fit."""
    if isinstance(argument, types.BaseTuple) and not isinstance(argument, types.UniTuple):
        return _unified if len(argument) else _empty
    if argument.dtype == types.int64 and getattr(argument, "layout", "") == "C":
        return _same
    return _copied_if_it_fits if argument.dtype == types.uint64 else _copied


@register_jitable
def refused(record, operation, outcome):
    """Refuse a call that reaches no entry; break the communicator if this thread cannot raise."""
    run(record.refuse, record, Refusal(operation, outcome, 0))


def refusal(operation: int | None, problem: Problem) -> Any:
    """Return the function that refuses a wrong type; ``operation`` is a call's number, or None."""
    sentence, word, error = problem
    is_noted, number = operation is not None, operation or 0

    def refuse(comm):
        if is_noted:
            refused(record_of(comm), number, status.REFUSED)
        raise error(sentence, word)

    return register_jitable(own_named(refuse))
