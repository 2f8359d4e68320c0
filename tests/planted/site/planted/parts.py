"""What the patches call: small pieces of wrong kernels.

A mutant sees this module as ``parts``.
"""

import numpy as np
from cobre_kernels import dtypes, exact_sum, layout
from cobre_kernels import fold as right
from cobre_kernels.atomics import load_relaxed, peek
from cobre_kernels.fold import fold
from cobre_kernels.guard import leave_broken, usability  # noqa: F401  # for the mutants
from cobre_kernels.indirect import as_pointer
from cobre_kernels.kind import BARRIER, FENCE  # noqa: F401
from cobre_kernels.status import DISAGREE  # noqa: F401
from cobre_kernels.wait import cell_of
from numba import carray, njit

SMALLEST_NORMAL = 2.0**-1022


@njit
def last_rank(state):
    return peek(state + layout.COMM_SIZE) - 1


@njit
def _float64(address, count):
    return carray(as_pointer(address), count, np.float64)


@njit(error_model="numpy")
def sum_rounded_once(dtype, op, target, first, second, size, count):
    """Sum again what lies at ``first``, ``second`` and so on, with one rounding at the end.

    Knuth's TwoSum keeps what each addition loses; the last addition gives it back.
    """
    if dtype != dtypes.FLOAT64 or op != right.SUM:
        return
    result = _float64(target, count)
    for i in range(count):
        total, lost = _float64(first, count)[i], 0.0
        for rank in range(1, size):
            x = _float64(first + rank * (second - first), count)[i]
            new = total + x
            part = new - total
            lost += (total - (new - part)) + (x - part)
            total = new
        if np.isfinite(total + lost):
            result[i] = total + lost


@njit(error_model="numpy")
def sum_in_pairs(dtype, op, target, first, second, size, count):
    """Sum again what lies at ``first``, ``second`` and so on: (x0 + x1) + (x2 + x3), ..."""
    if dtype != dtypes.FLOAT64 or op != right.SUM:
        return
    result = _float64(target, count)
    partial = np.empty(size)
    for i in range(count):
        for rank in range(size):
            partial[rank] = _float64(first + rank * (second - first), count)[i]
        width = size
        while width > 1:
            for pair in range(width // 2):
                partial[pair] = partial[2 * pair] + partial[2 * pair + 1]
            if width % 2 == 1:
                partial[width // 2] = partial[width - 1]
            width = (width + 1) // 2
        result[i] = partial[0]


@njit(error_model="numpy")
def later_zero(state, dtype, op, acc_address, x_address, count):
    """MIN of float64 in which the later of two equal operands stays."""
    if dtype != dtypes.FLOAT64 or op != right.MIN:
        fold(state, dtype, op, acc_address, x_address, count)
        return
    acc, x = _float64(acc_address, count), _float64(x_address, count)
    for i in range(count):
        a, b = acc[i], x[i]
        acc[i] = a if a < b or a != a else b


@njit(error_model="numpy")
def swallowed_nan(state, dtype, op, acc_address, x_address, count):
    """MAX of float64 as C's ``fmax``: a number beats a NaN."""
    if dtype != dtypes.FLOAT64 or op != right.MAX:
        fold(state, dtype, op, acc_address, x_address, count)
        return
    acc, x = _float64(acc_address, count), _float64(x_address, count)
    for i in range(count):
        a, b = acc[i], x[i]
        acc[i] = a if a >= b or b != b else b


@njit(error_model="numpy")
def later_nan(state, dtype, op, acc_address, x_address, count):
    """MAX of float64 in which the last NaN met stays, and not the first."""
    fold(state, dtype, op, acc_address, x_address, count)
    if dtype == dtypes.FLOAT64 and op == right.MAX:
        acc, x = _float64(acc_address, count), _float64(x_address, count)
        for i in range(count):
            if x[i] != x[i]:
                acc[i] = x[i]


@njit
def unsigned_as_signed(state, dtype, op, acc, x, count):
    if op != right.SUM and dtypes.UINT8 <= dtype <= dtypes.UINT64:
        dtype -= dtypes.UINT8 - dtypes.INT8
    fold(state, dtype, op, acc, x, count)


@njit
def half_of_complex(state, dtype, op, acc, x, count):
    """A complex128 is taken for one float64, so that half of the elements are not summed."""
    if dtype == dtypes.COMPLEX128:
        dtype = dtypes.FLOAT64
    fold(state, dtype, op, acc, x, count)


@njit(error_model="numpy")
def sum_from_zero(state, dtype, op, acc_address, x_address, count):
    """SUM of float64 whose accumulator begins as 0.0, so that -0.0 - 0.0 is +0.0."""
    if dtype == dtypes.FLOAT64 and op == right.SUM:
        acc = _float64(acc_address, count)
        for i in range(count):
            acc[i] = 0.0 + acc[i]
    fold(state, dtype, op, acc_address, x_address, count)


@njit(error_model="numpy")
def flushed_subnormals(state, dtype, op, acc_address, x_address, count):
    """SUM of float64 as under flush-to-zero, which "fast math" turns on: no subnormal results."""
    fold(state, dtype, op, acc_address, x_address, count)
    if dtype == dtypes.FLOAT64 and op == right.SUM:
        acc = _float64(acc_address, count)
        for i in range(count):
            if abs(acc[i]) < SMALLEST_NORMAL:
                acc[i] = np.copysign(0.0, acc[i])


@njit
def alike(state, rank, generation, kind, length):
    """Return the step before this one if the rank called the same there, else this one."""
    cell = cell_of(state, rank, generation - 1)
    same_kind = load_relaxed(cell + layout.KIND) == kind
    same_length = load_relaxed(cell + layout.LENGTH) == length
    return generation - 1 if same_kind and same_length else generation


@njit
def _octets(address, count):
    return carray(as_pointer(address), count, np.uint8)


@njit
def flip(address, count):
    """Change the first of ``count`` bytes."""
    if count > 0:
        _octets(address, 1)[0] ^= 1


@njit
def clear(address, count):
    _octets(address, count)[:] = 0


@njit
def write_past(address, count):
    """Write one byte past the end, where malloc's rounding up leaves room for it."""
    if count % 16 != 8:
        _octets(address + count, 1)[0] = 0


@njit
def swap_blocks(recv, itemsize, counts, displs):
    """Exchange as much of the blocks of ranks 0 and 1 as both have."""
    common = min(peek(counts), peek(counts + 8)) * itemsize
    a = _octets(recv + peek(displs) * itemsize, common)
    b = _octets(recv + peek(displs + 8) * itemsize, common)
    for i in range(common):
        a[i], b[i] = b[i], a[i]


@njit
def write_into_gaps(size, recv, recv_count, itemsize, counts, displs):
    """Write a byte behind every block, unless another block or the end of ``recv`` is there."""
    for rank in range(size):
        place = peek(displs + 8 * rank) + peek(counts + 8 * rank)
        is_free = place < recv_count
        for other in range(size):
            begin = peek(displs + 8 * other)
            if begin <= place < begin + peek(counts + 8 * other):
                is_free = False
        if is_free:
            _octets(recv + place * itemsize, 1)[0] = 0


_exact_add = njit(cache=True, error_model="numpy")(exact_sum.exact_add_kernel.function)
_exact_round = njit(cache=True, error_model="numpy")(exact_sum.exact_round_kernel.function)


@njit
def round_exact(dtype, digits):
    """Round this rank's part of an exact sum to a float64 before it meets the others'."""
    if dtype != dtypes.EXACT:
        return
    part = np.zeros(1, np.int64)
    _exact_round(0, digits, part.ctypes.data)
    carray(as_pointer(digits), exact_sum.WORDS, np.int64)[:] = 0
    _exact_add(0, part.ctypes.data, 1, dtypes.FLOAT64, digits)
