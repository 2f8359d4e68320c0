"""Gives each compiled function that closes over something a name of its own.

numba makes the symbol of a function from the function's module, its qualified name, the types of
its arguments, and a count of the functions that the process has compiled. Suppose that one factory
makes two closures, and that each is compiled for the same types, in two processes. Then both may
have the same symbol. If a process loads the callers of both from numba's cache, it links the
closure that it has loaded first into both callers, without an error. So here the name of a closure
contains a hash of the values that it closes over.

numba may still mix up a user's own closures: docs/guarantees.md, "Not promised".
"""

import hashlib
import types
import uuid

from cobre_kernels.machine.compiled import CFunction, Instruction

PLAIN = (bool, int, float, complex, str, bytes, type(None))


def own_named(function):
    """Give a function that closes over something a name of its own; return the function."""
    if function.__closure__:
        digest = hashlib.sha256(_told(function).encode()).hexdigest()
        function.__qualname__ = f"{function.__qualname__}.{digest[:16]}"
    return function


def copy_of(function):
    """Return a copy of a function, which can get another name."""
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__,
        function.__closure__,
    )  # fmt: skip
    copy.__kwdefaults__, copy.__qualname__ = function.__kwdefaults__, function.__qualname__
    copy.__module__, copy.__dict__ = function.__module__, dict(function.__dict__)
    return copy


def _told(value):
    """Return words that differ for any two values which compiled code may distinguish."""
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__}({', '.join(map(_told, value))})"
    function = getattr(value, "py_func", value)  # of a routine, or of numba's dispatcher
    if isinstance(function, types.FunctionType):
        cells = [_cell(cell) for cell in function.__closure__ or ()]
        code = function.__code__
        return _told([function.__module__, function.__qualname__, code.co_firstlineno, *cells])
    if isinstance(value, Instruction):
        return _told([value.python, value.detail])
    if isinstance(value, CFunction):
        return value.name
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if type(value).__module__.partition(".")[0] == "numpy":
        return f"{type(value).__name__} {value!r}"
    return str(uuid.uuid4())  # no other value gets this name


def _cell(cell):
    try:
        return _told(cell.cell_contents)
    except ValueError:  # the cell is still empty
        return str(uuid.uuid4())
