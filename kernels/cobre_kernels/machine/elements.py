"""Elements of a NumPy type at an address, for loops that LLVM should vectorise; float64 bits.

numba's ``carray`` gives the same access, but makes numba compile several functions for each type.
"""

import ctypes
import math
import struct

import numpy as np

from cobre_kernels.machine.compiled import instruction


def element_access(dtype):
    """Return ``load(address, index)`` and ``store(address, index, value)`` for one type."""
    dtype = np.dtype(dtype)

    def at(address, index):
        place = (ctypes.c_char * dtype.itemsize).from_address(address + index * dtype.itemsize)
        return np.frombuffer(place, dtype=dtype)

    def load_element(address, index):
        return at(address, index)[0]

    def store_element(address, index, value):
        at(address, index)[0] = value

    return instruction(load_element, dtype), instruction(store_element, dtype)


@instruction
def bits_of(number):
    """Return the bits of a float64 as a word."""
    return struct.unpack("<q", struct.pack("<d", number))[0]


@instruction
def float_of(bits):
    """Return the float64 of a word's bits."""
    return struct.unpack("<d", struct.pack("<q", bits))[0]


@instruction
def square_root(number):
    """Return the square root of a float64, rounded as IEEE 754 says."""
    return math.sqrt(number)
