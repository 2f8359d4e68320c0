"""The rank-ordered fold: ``acc[i] = op(acc[i], x[i])``, one pass per rank, in rank order.

SUM adds without reassociation, widening or fused multiply-add; integers wrap. MIN and MAX are
``numpy.minimum`` and ``numpy.maximum``, in which the earlier operand stays when the two are equal
(+0.0 and -0.0 included) and the first NaN met stays. Each element is folded by itself, so the
result does not depend on how a payload is cut into chunks, nor on SIMD width.
"""

import numpy as np
from numba import carray, config

from cobre_kernels import dtypes, layout
from cobre_kernels.atomics import peek
from cobre_kernels.indirect import as_pointer, call6
from cobre_kernels.kernel import kernel
from cobre_kernels.routine import routine

SUM = 0
MIN = 1
MAX = 2


def _make_sum(dtype):
    @routine(error_model="numpy")
    def fold_sum(acc_address, x_address, count):
        acc = carray(as_pointer(acc_address), count, dtype)
        x = carray(as_pointer(x_address), count, dtype)
        for i in range(count):
            acc[i] = acc[i] + x[i]

    return fold_sum


def _make_min(dtype):
    @routine(error_model="numpy")
    def fold_min(acc_address, x_address, count):
        acc = carray(as_pointer(acc_address), count, dtype)
        x = carray(as_pointer(x_address), count, dtype)
        for i in range(count):
            a, b = acc[i], x[i]
            acc[i] = a if a <= b or a != a else b

    return fold_min


def _make_max(dtype):
    @routine(error_model="numpy")
    def fold_max(acc_address, x_address, count):
        acc = carray(as_pointer(acc_address), count, dtype)
        x = carray(as_pointer(x_address), count, dtype)
        for i in range(count):
            a, b = acc[i], x[i]
            acc[i] = a if a >= b or a != a else b

    return fold_max


# Two's complement addition is the same for signed and unsigned.
_sum_1 = _make_sum(np.uint8)
_sum_2 = _make_sum(np.uint16)
_sum_4 = _make_sum(np.uint32)
_sum_8 = _make_sum(np.uint64)
_sum_float32 = _make_sum(np.float32)
_sum_float64 = _make_sum(np.float64)


@routine(error_model="numpy")
def _fold_sum(dtype, acc, x, count):
    if dtype == dtypes.FLOAT64:
        _sum_float64(acc, x, count)
    elif dtype == dtypes.FLOAT32:
        _sum_float32(acc, x, count)
    elif dtype == dtypes.INT64 or dtype == dtypes.UINT64 or dtype == dtypes.EXACT:
        _sum_8(acc, x, count)
    elif dtype == dtypes.INT32 or dtype == dtypes.UINT32:
        _sum_4(acc, x, count)
    elif dtype == dtypes.INT16 or dtype == dtypes.UINT16:
        _sum_2(acc, x, count)
    elif dtype == dtypes.INT8 or dtype == dtypes.UINT8:
        _sum_1(acc, x, count)
    elif dtype == dtypes.COMPLEX128:  # complex addition adds the parts
        _sum_float64(acc, x, 2 * count)
    else:
        _sum_float32(acc, x, 2 * count)


def _make_extremum(make):
    float64, float32 = make(np.float64), make(np.float32)
    int64, int32, int16, int8 = make(np.int64), make(np.int32), make(np.int16), make(np.int8)
    uint64, uint32 = make(np.uint64), make(np.uint32)
    uint16, uint8 = make(np.uint16), make(np.uint8)

    @routine(error_model="numpy")
    def fold_extremum(dtype, acc, x, count):
        if dtype == dtypes.FLOAT64:
            float64(acc, x, count)
        elif dtype == dtypes.FLOAT32:
            float32(acc, x, count)
        elif dtype == dtypes.INT64:
            int64(acc, x, count)
        elif dtype == dtypes.INT32:
            int32(acc, x, count)
        elif dtype == dtypes.INT16:
            int16(acc, x, count)
        elif dtype == dtypes.INT8:
            int8(acc, x, count)
        elif dtype == dtypes.UINT64:
            uint64(acc, x, count)
        elif dtype == dtypes.UINT32:
            uint32(acc, x, count)
        elif dtype == dtypes.UINT16:
            uint16(acc, x, count)
        else:
            uint8(acc, x, count)

    return fold_extremum


_fold_min = _make_extremum(_make_min)
_fold_max = _make_extremum(_make_max)


@kernel(arguments=5)
def fold_kernel(state, dtype, op, acc, x, count):
    """Fold ``count`` elements at address ``x`` into those at address ``acc``; return 0.

    Assumes a reducible dtype code, aligned addresses, and ranges that are the same or disjoint.
    """
    if op == SUM:
        _fold_sum(dtype, acc, x, count)
    elif op == MIN:
        _fold_min(dtype, acc, x, count)
    else:
        _fold_max(dtype, acc, x, count)
    return 0


if config.DISABLE_JIT:
    fold = fold_kernel.function

else:

    @routine
    def fold(state, dtype, op, acc, x, count):
        """Call :func:`fold_kernel`, whose 26 loops no other kernel has to contain."""
        return call6(peek(state + layout.FOLD_KERNEL), state, dtype, op, acc, x, count)


KERNELS = (fold_kernel,)
