"""A kernel: a function of a record and a call, compiled once, called by address.

The address of a kernel is in the communicator's record. So a user's function that calls the kernel
does not contain the kernel, and is quick to compile, to cache and to link; the indirect call costs
about a nanosecond. For its callers a kernel is a function of C, which takes the address of the
record and the words of the call, and returns a word. So the machine code of a kernel depends
neither on Python nor on numba (``build.py``).
"""

import functools

from cobre_kernels.machine import code
from cobre_kernels.machine.compiled import NOTHING_IS_COMPILED, instruction

KERNELS = {}  # by symbol

_interpreted = {}  # if nothing is compiled: kernels, by numbers that serve as their addresses


class Kernel:
    """A function ``(record) -> word`` or ``(record, call) -> word``.

    Parameters
    ----------
    function : callable
        The function that is compiled.
    record : Record
        The table of its first argument.
    call : type or None
        The NamedTuple of int64 that is its second argument; None if it has only one.

    Attributes
    ----------
    function, record, call_type
        The three parameters.
    symbol : str
        The name of its machine code.
    address : int
        The address of the machine code, for :func:`run`.
    call : callable
        The kernel as Python calls it, with the record's address and the words of the call.
    """

    def __init__(self, function, record, call):
        self.function = function
        self.record, self.call_type = record, call
        self.symbol = f"{function.__module__}.{function.__qualname__}"
        KERNELS[self.symbol] = self

    @functools.cached_property
    def address(self):
        """The address of the machine code, to be put into the communicator's record."""
        if NOTHING_IS_COMPILED:
            _interpreted[id(self)] = self
            return id(self)
        return code.address_of(self)

    @functools.cached_property
    def call(self):
        """The kernel as Python calls it, with the record's address and the words of the call."""
        if not NOTHING_IS_COMPILED:
            return code.function_of(self)
        if self.call_type is None:
            return lambda address: self.function(self.record.at(int(address)))
        return lambda address, *words: self.function(
            self.record.at(int(address)), self.call_type(*words)
        )


def kernel(record, call=None):
    """Turn a function of a record, and maybe of a call, into a :class:`Kernel`."""
    return lambda function: Kernel(function, record, call)


@instruction
def run(address, record, call):
    """Call the kernel at an address, with a record and a call; return the kernel's word."""
    return _interpreted[address].function(record, call)


@instruction
def run_alone(address, record):
    """Call the kernel at an address, which takes only a record; return the kernel's word."""
    return _interpreted[address].function(record)
