"""Elements of a NumPy type at an address, for loops that LLVM is to vectorise.

An array made by ``carray`` does the same, and costs a compilation of several functions for each
type.
"""

import ctypes

import numpy as np
from numba import config, from_dtype, types
from numba.extending import intrinsic


def element_access(dtype):
    """Return ``load(address, index)`` and ``store(address, index, value)`` for one type."""
    if config.DISABLE_JIT:
        return _interpreted(np.dtype(dtype))
    element = from_dtype(np.dtype(dtype))

    def pointer(context, builder, address, index):
        first = builder.inttoptr(address, context.get_value_type(element).as_pointer())
        return builder.gep(first, [index], inbounds=True)

    @intrinsic
    def load(typingctx, address, index):
        def codegen(context, builder, signature, args):
            return builder.load(pointer(context, builder, *args))

        return element(types.int64, types.int64), codegen

    @intrinsic
    def store(typingctx, address, index, value):
        def codegen(context, builder, signature, args):
            builder.store(args[2], pointer(context, builder, *args[:2]))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, element), codegen

    return load, store


def _interpreted(dtype):
    def at(address, index):
        place = (ctypes.c_char * dtype.itemsize).from_address(address + index * dtype.itemsize)
        return np.frombuffer(place, dtype=dtype)

    def store(address, index, value):
        at(address, index)[0] = value

    return lambda address, index: at(address, index)[0], store
