"""Addresses as functions and as arrays.

A compiled kernel is called through its address, which travels in the communicator's state. So the
kernels are compiled once, and the user's function that calls them stays small to compile, to cache
and to link; an indirect call costs about a nanosecond. Beside ``atomics.py`` the only file that
writes LLVM instructions.
"""

from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

_I64 = ir.IntType(64)


def _call_with(arity):
    """Make an intrinsic that calls the C function ``int64 f(int64 x arity)`` at an address."""

    def generate(context, builder, signature, args):
        function_type = ir.FunctionType(_I64, [_I64] * arity)
        return builder.call(builder.inttoptr(args[0], function_type.as_pointer()), args[1:])

    return types.int64(*[types.int64] * (arity + 1)), generate


if not config.DISABLE_JIT:

    @intrinsic
    def call1(typingctx, address, a):
        """Call a kernel of one integer by address."""
        return _call_with(1)

    @intrinsic
    def call3(typingctx, address, a, b, c):
        """Call a kernel of three integers by address."""
        return _call_with(3)

    @intrinsic
    def call5(typingctx, address, a, b, c, d, e):
        """Call a kernel of five integers by address."""
        return _call_with(5)

    @intrinsic
    def call6(typingctx, address, a, b, c, d, e, f):
        """Call a kernel of six integers by address."""
        return _call_with(6)

    @intrinsic
    def call8(typingctx, address, a, b, c, d, e, f, g, h):
        """Call a kernel of eight integers by address."""
        return _call_with(8)

    @intrinsic
    def call11(typingctx, address, a, b, c, d, e, f, g, h, i, j, k):
        """Call a kernel of eleven integers by address."""
        return _call_with(11)

    @intrinsic
    def as_pointer(typingctx, address):
        """Turn an address into the ``void *`` that :func:`numba.carray` takes."""

        def generate(context, builder, signature, args):
            return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

        return types.voidptr(types.int64), generate

else:
    import ctypes

    call1 = call3 = call5 = call6 = call8 = call11 = (
        None  # without compilation there are no addresses to call
    )

    def as_pointer(address):
        """Turn an address into the ``void *`` that :func:`numba.carray` takes."""
        return ctypes.c_void_p(address)
