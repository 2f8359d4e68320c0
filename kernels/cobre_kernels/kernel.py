"""A kernel: a function of integers, compiled when first needed, cached on disk, called by address.

numba's cache knows only the source file of the function it stores, but a kernel inlines half of
this package. So every kernel and every door to it takes its state as a :class:`StateType` whose
name carries a hash of all our sources: after an upgrade the signature is another one, and what an
older version compiled is never run.
"""

import functools
import hashlib
import pathlib

from numba import config, njit, types
from numba.core import cgutils
from numba.extending import NativeValue, intrinsic, models, register_model, unbox


@functools.cache
def source_hash():
    """Hexadecimal hash of every source file of this package."""
    digest = hashlib.sha256()
    for path in sorted(pathlib.Path(__file__).parent.rglob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


class StateType(types.Type):
    """The numba type of a state's address: an integer that only our own code makes."""

    def __init__(self):
        super().__init__(name=f"CobreState({source_hash()})")


state_type = StateType()


@register_model(StateType)
class _StateModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, cgutils.intp_t)


@unbox(StateType)
def _unbox_state(typ, obj, c):
    return NativeValue(c.pyapi.long_as_longlong(obj))


if config.DISABLE_JIT:

    def address_of(state):
        """Return the address a state is at."""
        return state

else:

    @intrinsic
    def address_of(typingctx, state):
        """Return the address a state is at."""
        return types.int64(state_type), lambda context, builder, signature, args: args[0]


class Kernel:
    """A function ``(state, int64, ...) -> status``.

    Attributes
    ----------
    function : callable
        What is compiled.
    address : int
        Of the C function ``int64 f(int64, ...)``; compiles or loads from the cache when first read.
    call : callable
        The same function for Python integers, without numba's dispatch.
    """

    def __init__(self, function, arguments):
        self.function = function
        self._signature = types.int64(state_type, *[types.int64] * arguments)

    @functools.cached_property
    def _compiled(self):
        return compile_cached(self._signature, self.function)

    @functools.cached_property
    def address(self):
        """Address of the C function, for the state's table."""
        if config.DISABLE_JIT:
            return 0
        library, description = self._compiled.library, self._compiled.fndesc
        return library.get_pointer_to_function(description.llvm_cfunc_wrapper_name)

    @functools.cached_property
    def call(self):
        """The function for Python integers."""
        return self.function if config.DISABLE_JIT else self._compiled.entry_point


def kernel(arguments):
    """Turn a function of a state and so many integers into a :class:`Kernel`."""
    return lambda function: Kernel(function, arguments)


def compile_cached(signature, function):
    """Compile for one signature, through numba's disk cache where there is a place for it."""
    options = {"error_model": "numpy"}
    try:
        dispatcher = njit(signature, cache=True, **options)(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        dispatcher = njit(signature, **options)(function)
    return dispatcher.overloads[signature.args]
