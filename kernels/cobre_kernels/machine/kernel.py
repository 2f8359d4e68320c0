"""A kernel: a function of a record and a call, compiled once, called by address.

The address of a kernel travels in the communicator's record. A user's function that calls it stays
small to compile, to cache and to link; an indirect call costs about a nanosecond. To its callers a
kernel is a function of C: it takes the address of the record and the words of the call, and returns
a word. So its machine code depends neither on Python nor on numba (``build.py``).
"""

import functools

from cobre_kernels.machine import code
from cobre_kernels.machine.compiled import NOTHING_IS_COMPILED, instruction

KERNELS = {}  # by symbol

_interpreted = {}  # where nothing is compiled: kernels by the numbers that serve as addresses


class Kernel:
    """A function ``(record) -> word`` or ``(record, call) -> word``.

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
    symbol : str
        The name of its machine code.
    address : int
        Of the machine code, for :func:`run`.
    call : callable
        The same function from Python; it takes the record's address and the words of the call.
    """

    def __init__(self, function, record, call):
        self.function = function
        self.record, self.call_type = record, call
        self.symbol = f"{function.__module__}.{function.__qualname__}"
        KERNELS[self.symbol] = self

    @functools.cached_property
    def address(self):
        """Address of the machine code, for the communicator's record."""
        if NOTHING_IS_COMPILED:
            _interpreted[id(self)] = self
            return id(self)
        return code.address_of(self)

    @functools.cached_property
    def call(self):
        """The function for Python, which takes the record's address and the words of the call."""
        if not NOTHING_IS_COMPILED:
            return code.function_of(self)
        if self.call_type is None:
            return lambda address: self.function(self.record.at(int(address)))
        return lambda address, *words: self.function(
            self.record.at(int(address)), self.call_type(*words)
        )


def kernel(record, call=None):
    """Turn a function of a record, and of a call, into a :class:`Kernel`."""
    return lambda function: Kernel(function, record, call)


@instruction
def run(address, record, call):
    """Call the kernel at an address with a record and a call; return its word."""
    return _interpreted[address].function(record, call)


@instruction
def run_alone(address, record):
    """Call the kernel at an address that takes a record only; return its word."""
    return _interpreted[address].function(record)
