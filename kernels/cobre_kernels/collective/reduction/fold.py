"""The rank-ordered fold: ``acc[i] = op(acc[i], x[i])``, one pass per rank, in rank order.

SUM adds without reassociation, widening or fused multiply-add; integers wrap. MIN and MAX are
``numpy.minimum`` and ``numpy.maximum``: of two equal operands (+0.0 and -0.0 included) the earlier
one stays, and so does the first NaN. PROD multiplies as SUM adds. LAND and LOR take all but zero
for true, and give 0 or 1. BAND and BOR combine bits. Each element is folded by itself, so the
result does not depend on how a payload is cut into chunks, nor on SIMD width.
"""

from typing import NamedTuple

import numpy as np

from cobre_kernels.collective import dtypes
from cobre_kernels.collective.comm import COMM
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.elements import element_access
from cobre_kernels.machine.kernel import kernel, run

FOLD_BLOCK_BYTES = 8192  # of what is folded at a time, so that it stays in the first-level cache

SUM = 0
MIN = 1
MAX = 2
PROD = 3
LAND = 4
LOR = 5
BAND = 6
BOR = 7


def _make_fold(dtype):
    load, store = element_access(dtype)
    itemsize = np.dtype(dtype).itemsize  # a constant: its division is a shift

    @routine
    def fold_elements(op, acc, x, size_bytes):
        count = size_bytes // itemsize
        if op == SUM:
            for i in range(count):
                store(acc, i, load(acc, i) + load(x, i))
        elif op == MIN:
            for i in range(count):
                a, b = load(acc, i), load(x, i)
                store(acc, i, a if a <= b or a != a else b)
        else:
            for i in range(count):
                a, b = load(acc, i), load(x, i)
                store(acc, i, a if a >= b or a != a else b)

    return fold_elements


def _make_rare_fold(dtype):
    load, store = element_access(dtype)
    itemsize = np.dtype(dtype).itemsize  # a constant: its division is a shift

    @routine
    def fold_elements(op, acc, x, size_bytes):
        count = size_bytes // itemsize
        if op == PROD:
            for i in range(count):
                store(acc, i, load(acc, i) * load(x, i))
        elif op == LAND:
            for i in range(count):
                store(acc, i, 1 if (load(acc, i) != 0) & (load(x, i) != 0) else 0)
        else:
            for i in range(count):
                store(acc, i, 1 if (load(acc, i) != 0) | (load(x, i) != 0) else 0)

    return fold_elements


def _make_bitwise_fold():
    load, store = element_access(np.uint8)

    @routine
    def fold_octets(op, acc, x, size_bytes):
        if op == BAND:
            for i in range(size_bytes):
                store(acc, i, load(acc, i) & load(x, i))
        else:
            for i in range(size_bytes):
                store(acc, i, load(acc, i) | load(x, i))

    return fold_octets


_float64, _float32 = _make_fold(np.float64), _make_fold(np.float32)
_int64, _int32 = _make_fold(np.int64), _make_fold(np.int32)
_int16, _int8 = _make_fold(np.int16), _make_fold(np.int8)
_uint64, _uint32 = _make_fold(np.uint64), _make_fold(np.uint32)
_uint16, _uint8 = _make_fold(np.uint16), _make_fold(np.uint8)
# Their results for integers have the same bits with a sign and without.
_rare_float64, _rare_float32 = _make_rare_fold(np.float64), _make_rare_fold(np.float32)
_rare_64, _rare_32 = _make_rare_fold(np.uint64), _make_rare_fold(np.uint32)
_rare_16, _rare_8 = _make_rare_fold(np.uint16), _make_rare_fold(np.uint8)
_bitwise = _make_bitwise_fold()  # no bit depends on how large its element is


class Fold(NamedTuple):
    """Fold the elements in ``size_bytes`` bytes at address ``x`` into those at ``acc``."""

    dtype: int
    op: int
    acc: int
    x: int
    size_bytes: int


@routine
def _fold_rarely(call):
    """Fold as the call says, by an operation that few programs use; return 0."""
    dtype, op, acc, x, size_bytes = call
    if op >= BAND:
        _bitwise(op, acc, x, size_bytes)
    elif dtype == dtypes.FLOAT64:
        _rare_float64(op, acc, x, size_bytes)
    elif dtype == dtypes.FLOAT32:
        _rare_float32(op, acc, x, size_bytes)
    elif dtype == dtypes.INT64 or dtype == dtypes.UINT64:
        _rare_64(op, acc, x, size_bytes)
    elif dtype == dtypes.INT32 or dtype == dtypes.UINT32:
        _rare_32(op, acc, x, size_bytes)
    elif dtype == dtypes.INT16 or dtype == dtypes.UINT16:
        _rare_16(op, acc, x, size_bytes)
    else:
        _rare_8(op, acc, x, size_bytes)
    return 0


@kernel(COMM, Fold)
def fold_kernel(comm, call):
    """Fold as the call says; return 0.

    Assumes a reducible dtype code, aligned addresses, and ranges that are the same or disjoint.
    """
    dtype, op, acc, x, size_bytes = call
    if op > MAX:
        return _fold_rarely(call)
    if dtype == dtypes.FLOAT64:
        _float64(op, acc, x, size_bytes)
    elif dtype == dtypes.FLOAT32:
        _float32(op, acc, x, size_bytes)
    elif dtype == dtypes.INT64 or dtype == dtypes.EXACT:
        _int64(op, acc, x, size_bytes)
    elif dtype == dtypes.INT32:
        _int32(op, acc, x, size_bytes)
    elif dtype == dtypes.INT16:
        _int16(op, acc, x, size_bytes)
    elif dtype == dtypes.INT8:
        _int8(op, acc, x, size_bytes)
    elif dtype == dtypes.UINT64:
        _uint64(op, acc, x, size_bytes)
    elif dtype == dtypes.UINT32:
        _uint32(op, acc, x, size_bytes)
    elif dtype == dtypes.UINT16:
        _uint16(op, acc, x, size_bytes)
    elif dtype == dtypes.UINT8 or dtype == dtypes.BOOL:
        _uint8(op, acc, x, size_bytes)
    elif dtype == dtypes.COMPLEX128:  # has a SUM only, and that adds the parts
        _float64(SUM, acc, x, size_bytes)
    else:
        _float32(SUM, acc, x, size_bytes)
    return 0


@routine
def fold(comm, call, acc, x, size_bytes):
    """Fold by the operation of an allreduce; :func:`fold_kernel` alone contains the 30 loops."""
    run(comm.fold_kernel, comm, Fold(call.dtype, call.op, acc, x, size_bytes))
