"""The operations of an allreduce, and the rank-ordered fold: ``acc[i] = op(acc[i], x[i])``.

The loops of ``shm/allreduce.py``, ``nodes/allreduce.py`` and ``tcp/chain.py`` call the fold once
for each rank, in rank order. ``collective/entry.py`` folds the numbers of a single rank with
themselves, for LAND and LOR. Each element is folded separately, so the result depends neither on
how a payload is cut into chunks, nor on the width of SIMD.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cobre_kernels.collective import dtypes
from cobre_kernels.collective.comm import COMM
from cobre_kernels.machine.compiled import routine
from cobre_kernels.machine.elements import element_access
from cobre_kernels.machine.kernel import kernel, run

FOLD_BLOCK_BYTES = 8192  # bytes folded at a time; they stay in the first-level cache

SUM = 0
MIN = 1
MAX = 2
PROD = 3
LAND = 4
LOR = 5
BAND = 6
BOR = 7

# What a loop reads as one element. NUMBERS: an element of its own type. WORDS: a signed integer is
# read as an unsigned one, because the result has the same bits. OCTETS: a single byte, because each
# bit of the result depends only on the same bit of the elements.
NUMBERS, WORDS, OCTETS = "numbers", "words", "octets"


class Operation(NamedTuple):
    """What an operation makes of two elements, and which elements it takes.

    ``kinds`` are NumPy's letters for kinds: b bool, i integers, f floats, c complex numbers. If
    ``combine`` returns 0 or 1 (``gives_truth``), a single rank folds each element with itself, so
    that its result is 0 or 1 too.
    """

    combine: Callable
    kinds: str
    elements: str = WORDS
    gives_truth: bool = False


def _add(a, b):
    """Add without reassociation, widening or fused multiply-add; an integer may wrap."""
    return a + b


def _smaller(a, b):
    """Act like ``numpy.minimum``: of equal numbers (+0.0, -0.0) or two NaNs, return the earlier."""
    return a if a <= b or a != a else b


def _greater(a, b):
    """Act like ``numpy.maximum``: of equal numbers (+0.0, -0.0) or two NaNs, return the earlier."""
    return a if a >= b or a != a else b


def _multiply(a, b):
    """Multiply under the same rules as :func:`_add`."""
    return a * b


def _both(a, b):
    """Return 1 if both elements are true, else 0; every element other than zero is true."""
    return 1 if (a != 0) & (b != 0) else 0


def _any(a, b):
    """Return 1 if at least one element is true, else 0; every element other than zero is true."""
    return 1 if (a != 0) | (b != 0) else 0


def _common_bits(a, b):
    return a & b


def _all_bits(a, b):
    return a | b


OPERATIONS = {
    SUM: Operation(_add, "ifc"),
    MIN: Operation(_smaller, "bif", NUMBERS),
    MAX: Operation(_greater, "bif", NUMBERS),
    PROD: Operation(_multiply, "if"),
    LAND: Operation(_both, "bif", gives_truth=True),
    LOR: Operation(_any, "bif", gives_truth=True),
    BAND: Operation(_common_bits, "bi", OCTETS),
    BOR: Operation(_all_bits, "bi", OCTETS),
}
COUNT = len(OPERATIONS)
_TRUTHS = sum(1 << op for op, operation in OPERATIONS.items() if operation.gives_truth)
_OF_BOOL, _OF_INTEGERS, _OF_FLOATS, _OF_COMPLEX = (
    sum(1 << op for op, operation in OPERATIONS.items() if kind in operation.kinds)
    for kind in "bifc"
)
_FOLDED = {code: np.dtype(dtypes.NAMES[code]) for code in range(dtypes.BOOL, dtypes.FLOAT16)}
_FOLDED[dtypes.EXACT] = np.dtype(np.int64)


@routine
def takes(op, dtype):
    """Tell whether an operation exists, and takes elements of this dtype."""
    operations = _OF_INTEGERS
    if dtype == dtypes.BOOL:
        operations = _OF_BOOL
    elif dtype == dtypes.FLOAT32 or dtype == dtypes.FLOAT64:
        operations = _OF_FLOATS
    elif dtype == dtypes.COMPLEX64 or dtype == dtypes.COMPLEX128:
        operations = _OF_COMPLEX
    return 0 <= op < COUNT and (operations >> op) & 1 != 0


@routine
def gives_truth(op):
    """Tell whether an operation exists, and has only 0 and 1 as results."""
    return 0 <= op < COUNT and (_TRUTHS >> op) & 1 != 0


class Fold(NamedTuple):
    """Fold the elements in ``size_bytes`` bytes at address ``x`` into those at ``acc``."""

    dtype: int
    op: int
    acc: int
    x: int
    size_bytes: int


def _loop(op, elements):
    """Return the routine that folds elements of this type."""
    load, store = element_access(elements)
    itemsize = elements.itemsize  # a constant, so a division by it becomes a shift
    combine = routine(OPERATIONS[op].combine, inline="always")

    @routine
    def fold_elements(call):
        for i in range(call.size_bytes // itemsize):
            store(call.acc, i, combine(load(call.acc, i), load(call.x, i)))

    return fold_elements


def _elements(op, dtype):
    """Return the type of one element, as a loop reads it."""
    kind, size = dtype.kind, dtype.itemsize
    if OPERATIONS[op].elements == OCTETS:
        kind, size = "u", 1
    elif kind == "c":
        kind, size = "f", size // 2  # real and imaginary parts are added separately
    elif kind == "b" or (kind == "i" and OPERATIONS[op].elements == WORDS):
        kind = "u"
    return np.dtype(f"{kind}{size}")


@routine
def _op(call):
    return call.op


@routine
def _dtype(call):
    return call.dtype


def _chosen(read, cases):
    """Return the routine that runs the case for the code of a call.

    ``read`` reads the code of a call. ``cases`` has the routine of each case. Its keys are words in
    which a bit is set for each code of the case. The last case needs no test, because :func:`takes`
    has refused all codes that are in no case.
    """
    *others, (_, chosen) = cases.items()
    for codes, case in reversed(others):
        chosen = _first_or(read, codes, case, chosen)
    return chosen


def _first_or(read, codes, case, rest):
    @routine
    def choose(call):
        if (codes >> read(call)) & 1 != 0:
            case(call)
        else:
            rest(call)

    return choose


def _fold_by(op):
    """Return the routine that folds by one operation, for every dtype that the operation takes."""
    codes = {}
    for code, dtype in _FOLDED.items():
        if dtype.kind.replace("u", "i") in OPERATIONS[op].kinds:
            elements = _elements(op, dtype)
            codes[elements] = codes.get(elements, 0) | 1 << code
    return _chosen(_dtype, {codes[elements]: _loop(op, elements) for elements in codes})


_fold = _chosen(_op, {1 << op: _fold_by(op) for op in OPERATIONS})


@kernel(COMM, Fold)
def fold_kernel(comm, call):
    """Fold as the call says; return 0.

    The caller has made sure that the operation takes the dtype (:func:`takes`), that addresses are
    aligned, and that the two ranges of bytes are the same or disjoint.
    """
    _fold(call)
    return 0


@routine
def fold(comm, call, acc, x, size_bytes):
    """Fold with the operation of an allreduce; only :func:`fold_kernel` contains the loops."""
    run(comm.fold_kernel, comm, Fold(call.dtype, call.op, acc, x, size_bytes))
