"""A kernel: a function of a record and a call, compiled once, cached on disk, called by address.

The address of a kernel travels in the communicator's record. A user's function that calls it stays
small to compile, to cache and to link; an indirect call costs about a nanosecond.
"""

import contextlib
import ctypes
import functools

from llvmlite import ir
from numba import config, njit, types
from numba.extending import intrinsic

from cobre_kernels.machine.compiling.disk_cache import cache_of
from cobre_kernels.machine.compiling.pipeline import KernelCompiler
from cobre_kernels.machine.record_types import RecordType

_I64 = ir.IntType(64)
RAISED = 11  # the status of a kernel that raised, because it had no memory


class Kernel:
    """A function ``(record) -> status`` or ``(record, call) -> status``.

    Parameters
    ----------
    function : callable
        The function that is compiled.
    record : Record
        The table of its first argument.
    call : type or None
        The NamedTuple of int64 that is its second argument, if it has one.

    Attributes
    ----------
    function, record, call_type
        The three parameters.
    address : int
        Of the compiled function, for :func:`run`; compiles or loads when first read.
    call : callable
        The same function from Python; it takes the record's address, and the call.
    """

    def __init__(self, function, record, call):
        self.function = function
        self.record, self.call_type = record, call

    @functools.cached_property
    def _compiled(self):
        arguments = [RecordType(self.record.name)]
        if self.call_type is not None:
            count = len(self.call_type._fields)
            arguments.append(types.NamedUniTuple(types.int64, count, self.call_type))
        return compile_cached(types.int64(*arguments), self.function)

    @functools.cached_property
    def address(self):
        """Address of the compiled function, for the communicator's record."""
        if config.DISABLE_JIT:
            _interpreted[id(self)] = self
            return id(self)
        library, description = self._compiled.library, self._compiled.fndesc
        return library.get_pointer_to_function(description.llvm_func_name)

    @functools.cached_property
    def call(self):
        """The function for Python, which takes the record's address, and the call."""
        if not config.DISABLE_JIT:
            return self._compiled.entry_point
        return lambda address, *call: self.function(self.record.at(int(address)), *call)


_interpreted = {}  # where nothing is compiled: kernels by the numbers that serve as addresses


def kernel(record, call=None):
    """Turn a function of a record, and of a call, into a :class:`Kernel`."""
    return lambda function: Kernel(function, record, call)


FOR_PYTHON = {"no_cfunc_wrapper": True}
FOR_C = {"no_cpython_wrapper": True}


def compile_cached(signature, function, wrappers=FOR_PYTHON):
    """Compile for one signature, through numba's disk cache where there is a place for it."""
    dispatcher = njit(pipeline_class=KernelCompiler, error_model="numpy", **wrappers)(function)
    try:
        cache = dispatcher._cache = cache_of(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
    else:
        found = None
        with contextlib.suppress(OSError):  # it cannot be read, or was removed
            try:
                found = cache.load(signature, dispatcher.targetctx.codegen())
            except (AttributeError, ImportError):
                # The index of the cache names a class that another version of this package had.
                cache.flush()
        if found is not None:
            return found
    dispatcher.compile(signature)
    return dispatcher.overloads[signature.args]


def method_address(signature, function):
    """Compile for one signature, to a function that C calls; return its address."""
    compiled = compile_cached(signature, function, FOR_C)
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name)


if not config.DISABLE_JIT:

    def _call(context, builder, address, argument_types, arguments):
        """Call a compiled function by numba's own convention; return RAISED if it raised.

        numba's wrapper for C would copy all arguments once more.
        """
        convention = context.call_conv
        function_type = convention.get_function_type(types.int64, argument_types)
        callee = builder.inttoptr(address, function_type.as_pointer())
        raised, result = convention.call_function(
            builder, callee, types.int64, argument_types, arguments
        )
        return builder.select(raised.is_ok, result, ir.Constant(_I64, RAISED))

    @intrinsic
    def run(typingctx, address, record, call):
        """Call the kernel at an address with a record and a call; return its status."""
        words = types.NamedUniTuple(types.int64, len(call), call.instance_class)

        def generate(context, builder, signature, args):
            packed = ir.Constant(context.get_value_type(words), ir.Undefined)
            for number, kind in enumerate(signature.args[2].types):
                value = builder.extract_value(args[2], number)
                value = context.cast(builder, value, kind, types.int64)
                packed = builder.insert_value(packed, value, number)
            return _call(context, builder, args[0], (record, words), (args[1], packed))

        return types.int64(types.int64, record, call), generate

    @intrinsic
    def run_alone(typingctx, address, record):
        """Call the kernel at an address that takes a record only; return its status."""

        def generate(context, builder, signature, args):
            return _call(context, builder, args[0], (record,), args[1:])

        return types.int64(types.int64, record), generate

    @intrinsic
    def as_pointer(typingctx, address):
        """Turn an address into the ``void *`` that :func:`numba.carray` takes."""

        def generate(context, builder, signature, args):
            return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

        return types.voidptr(types.int64), generate

else:

    def run(address, record, call):
        """Call the kernel that stands for an address."""
        return _interpreted[address].function(record, call)

    def run_alone(address, record):
        """Call the kernel that stands for an address."""
        return _interpreted[address].function(record)

    def as_pointer(address):
        """Turn an address into the ``void *`` that :func:`numba.carray` takes."""
        return ctypes.c_void_p(address)
