"""The slow path of arguments: converts unusual arguments, refuses wrong ones with a reason.

The compiled fast path serves plain arguments; all other arguments come here. Each ``*_call``
function returns the call that the entry of its collective takes, or raises.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from cobre_kernels.collective import dtypes
from cobre_kernels.collective.calls import (
    HASH_MASK,
    Allgatherv,
    Allreduce,
    Broadcast,
    Gatherv,
)
from numpy.typing import NDArray

from cobre_comm.arguments.arrays import OBJECT_FUNCTIONS, as_numbers, plain_array
from cobre_comm.arguments.mistakes import (
    CONTIGUOUS,
    COUNTS,
    DTYPE,
    OBJECTS,
    OP,
    OUTPUT,
    explained,
)
from cobre_comm.arguments.numbers import as_integer, describe
from cobre_comm.reduce_op import ReduceOp

Array = NDArray[Any]

REDUCIBLE = "use bool, int8..int64, uint8..uint64, float32, float64, complex64 or complex128"


def check_array(operation: str, name: str, value: object, *, writable: bool) -> Array:
    """Return ``value`` if it is an array of bytes that can be read (or written).

    ``TypeError`` is raised if ``value`` is not a plain array, holds Python objects, or has elements
    of no size. ``ValueError`` is raised if the array is not C-contiguous, or if it is read-only and
    ``writable`` is true.
    """
    array = plain_array(operation, name, value)
    if array.dtype.hasobject:
        function = OBJECT_FUNCTIONS.get(operation)
        said = f"holds Python objects ({array.dtype}); use a fixed-size dtype"
        said += f", or cobre_comm.objects.{function}" if function else ""
        raise explained(TypeError(f"{operation}: {name} {said}"), OBJECTS)
    if array.dtype.itemsize == 0:
        wrong = TypeError(f"{operation}: {name} has elements of no size ({array.dtype!r})")
        raise explained(wrong, DTYPE)
    if not array.flags.c_contiguous:
        said = f"is not C-contiguous (shape {array.shape}, strides {array.strides})"
        remedy = f"pass numpy.ascontiguousarray({name})"
        raise explained(ValueError(f"{operation}: {name} {said}; {remedy}"), CONTIGUOUS)
    if writable and not array.flags.writeable:
        wrong_value = ValueError(f"{operation}: {name} is read-only; pass a writable array")
        raise explained(wrong_value, OUTPUT)
    return array


def describe_dtype(dtype: np.dtype[Any]) -> str:
    """Return text that is the same for dtypes of the same layout, in Python and in @njit code."""
    if dtype.subdtype is not None:
        element, shape = dtype.subdtype
        return f"{shape}{describe_dtype(element)}"
    if dtype.names is None or dtype.fields is None:
        return dtype.str
    offsets = {name: dtype.fields[name][1] for name in dtype.names}
    fields = sorted((offset, name, describe_dtype(dtype[name])) for name, offset in offsets.items())
    return f"{fields}{dtype.itemsize}"


def dtype_word(dtype: np.dtype[Any]) -> int:
    """Return a dtype's code; if it has none, OTHER with a hash of its layout in the bits above."""
    code: int = dtypes.CODES.get(dtype, dtypes.OTHER)
    if code != dtypes.OTHER:
        return code
    return int(dtypes.OTHER | (zlib.crc32(describe_dtype(dtype).encode()) & HASH_MASK) << 8)


def _same_dtype(operation: str, send: Array, recv: Array) -> None:
    if send.dtype != recv.dtype:
        said = f"must have the same dtype, got {send.dtype} and {recv.dtype}"
        raise explained(TypeError(f"{operation}: send and recv {said}"), DTYPE)


def as_reduce_op(value: object) -> ReduceOp:
    """Return the :class:`ReduceOp` for a member or for a member's integer value, or raise."""
    try:
        number = as_integer("allreduce", "op", value)
    except TypeError:
        said = f"must be a ReduceOp, such as ReduceOp.SUM, got {describe(value)}"
        raise explained(TypeError(f"allreduce: op {said}"), OP) from None
    try:
        return ReduceOp(number)
    except ValueError:
        said = f"must be one of {', '.join(ReduceOp.__members__)} of ReduceOp"
        wrong = ValueError(f"allreduce: op {said}, got {describe(value)}")
        raise explained(wrong, OP) from None


def as_table(operation: str, name: str, value: Any) -> NDArray[np.int64]:
    """Return counts or displacements as a contiguous int64 vector."""
    array = as_numbers(operation, name, value)
    if array.ndim != 1:
        said = f"must be one-dimensional, one integer per rank, got {describe(value)}"
        raise explained(ValueError(f"{operation}: {name} {said}"), COUNTS)
    unfit = ValueError(f"{operation}: {name} do not fit 64-bit signed integers")
    if array.size and array.dtype.kind not in "iu":
        if isinstance(value, np.ndarray):
            wrong = TypeError(f"{operation}: {name} must be integers, got {describe(value)}")
            raise explained(wrong, COUNTS)
        try:  # integers of several types, or large integers
            return np.array([as_integer(operation, name, n) for n in value], dtype=np.int64)
        except OverflowError:
            raise unfit from None
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise unfit
    return np.ascontiguousarray(array, dtype=np.int64)


def broadcast_call(buf: object, root: int, rank: int) -> Broadcast:
    """Return the call of a broadcast."""
    array = check_array("broadcast", "buf", buf, writable=rank != root)
    return Broadcast(array.ctypes.data, array.nbytes, dtype_word(array.dtype), root)


def allreduce_call(send: object, recv: object, op: int) -> Allreduce:
    """Return the call of an allreduce."""
    source = check_array("allreduce", "send", send, writable=False)
    target = check_array("allreduce", "recv", recv, writable=True)
    _same_dtype("allreduce", source, target)
    code = dtypes.CODES.get(source.dtype, dtypes.OTHER)
    if not dtypes.is_reducible(code):
        said = f"allreduce: dtype {source.dtype} cannot be reduced; {REDUCIBLE}"
        raise explained(TypeError(said), DTYPE)
    send_at, recv_at = source.ctypes.data, target.ctypes.data
    itemsize = source.dtype.itemsize
    return Allreduce(send_at, source.size, recv_at, target.size, itemsize, code, int(op))


def exact_sum_values(values: object) -> tuple[Array, int]:
    """Return the values of an exact sum, and the code of their dtype."""
    array = check_array("exact_sum", "values", values, writable=False)
    code = dtypes.CODES.get(array.dtype, dtypes.OTHER)
    if code not in (dtypes.FLOAT64, dtypes.FLOAT32):
        wrong = TypeError(f"exact_sum: values must be float64 or float32, got {array.dtype}")
        raise explained(wrong, DTYPE)
    if not array.flags.aligned:
        raise ValueError("exact_sum: values is not aligned; pass a copy of it")
    return array, code


def blocks_call(
    operation: str,
    send: object,
    recv: object,
    counts: NDArray[np.int64],
    displs: NDArray[np.int64],
) -> Allgatherv:
    """Return the call of an allgatherv; for the root of a gatherv, all fields but ``root``."""
    source = check_array(operation, "send", send, writable=False)
    target = check_array(operation, "recv", recv, writable=True)
    _same_dtype(operation, source, target)
    return Allgatherv(
        send=source.ctypes.data,
        send_count=source.size,
        recv=target.ctypes.data,
        recv_count=target.size,
        itemsize=source.dtype.itemsize,
        dtype=dtype_word(source.dtype),
        counts=counts.ctypes.data,
        displs=displs.ctypes.data,
        counts_len=counts.size,
        displs_len=displs.size,
    )


def sender_call(send: object, root: int) -> Gatherv:
    """Return the call of a gatherv on a rank that is not the root."""
    source = check_array("gatherv", "send", send, writable=False)
    itemsize, dtype = source.dtype.itemsize, dtype_word(source.dtype)
    return Gatherv(source.ctypes.data, source.size, 0, 0, itemsize, dtype, 0, 0, 0, 0, root)
