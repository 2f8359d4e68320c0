"""Codes of the element types, and the code of each NumPy type number."""

import numpy as np

OTHER = 0  # a dtype without a code, such as a structured one; signatures have a hash of the dtype
BOOL = 1
INT8, INT16, INT32, INT64 = 2, 3, 4, 5
UINT8, UINT16, UINT32, UINT64 = 6, 7, 8, 9
FLOAT32, FLOAT64 = 10, 11
COMPLEX64, COMPLEX128 = 12, 13
FLOAT16, LONGDOUBLE, CLONGDOUBLE = 14, 15, 16
EXACT = 17  # the int64 digits of an exact sum; no other elements may be reduced with them

# The constants have NumPy's names, in capitals.
_NAMES = {code: name.lower() for name, code in vars().items() if name.isupper()}
del _NAMES[OTHER], _NAMES[EXACT]
CODES = {np.dtype(name): code for code, name in _NAMES.items()}
NAMES = {EXACT: "exact sum", **_NAMES}

# Codes by NumPy's type number (int64 has two numbers, `l` and `q`); -1: the slow path decides.
BY_TYPE_NUMBER = tuple(
    CODES.get(np.dtype(character), -1) if character in "?bBhHiIlLqQfdgFDGe" else -1
    for character in "?bBhHiIlLqQfdgFDGOSUVMme"
)


def is_reducible(code):
    """Whether ``allreduce`` folds this element type."""
    return BOOL <= code <= COMPLEX128
