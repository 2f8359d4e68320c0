"""Routines, instructions and functions of C, of which kernels are made; declared without numba.

So a rank that calls collectives only from Python never imports numba. When numba compiles a
function, it asks each global of the function for its numba type. The type is made only at this
moment, by a module that imports numba (``machine/compiling/compiler.py``).

With ``NUMBA_DISABLE_JIT=1`` nothing is compiled, and routines and instructions are plain functions
of Python.
"""

import ctypes
import functools
import importlib
import os


def _is_off(value):
    """Tell whether this value of NUMBA_DISABLE_JIT turns compilation off, as numba reads it."""
    try:
        return int(value) != 0
    except ValueError:
        return False


NOTHING_IS_COMPILED = _is_off(os.environ.get("NUMBA_DISABLE_JIT", ""))


def _compiler():
    """Return ``machine/compiling/compiler.py``, which imports numba."""
    return importlib.import_module("cobre_kernels.machine.compiling.compiler")


class Routine:
    """A function that becomes part of its callers, and is compiled once for all constants.

    numba itself would compile it anew for each constant that a caller passes. ``options`` are
    options of ``numba.njit``. ``py_func`` is the function in Python, for tests.
    """

    __numba__ = "py_func"  # numba's own decorators find the function in the attribute of this name

    def __init__(self, function, **options):
        self.py_func, self.options = function, options
        functools.update_wrapper(self, function)

    @functools.cached_property
    def dispatcher(self):
        """The function that numba makes of this routine."""
        return _compiler().dispatcher_of(self)

    @functools.cached_property
    def _numba_type_(self):
        return _compiler().type_of_routine(self)

    def __call__(self, *arguments):
        """Refuse the call, because Python calls kernels only."""
        name = self.__name__
        raise TypeError(f"{name} is a routine, which compiled code calls; here call {name}.py_func")

    def __wrapper_address__(self):
        """Refuse to be passed as a function: numba asks for an address here, but there is none."""
        name = self.__name__
        raise TypeError(
            f"{name} is a routine, which has no address: where an argument has the type of a "
            f"function, pass numba.njit({name}.py_func)"
        )


def routine(function=None, **options):
    """Turn a function into a :class:`Routine`."""
    if function is None:
        return lambda function: routine(function, **options)
    return function if NOTHING_IS_COMPILED else Routine(function, **options)


class Instruction:
    """A function that becomes instructions of LLVM (``compiling/instructions.py``).

    ``python`` does the same in Python, and has the name under which that file has the instructions.
    ``detail`` is anything else on which the instructions depend, such as a dtype or a record.
    """

    def __init__(self, python, detail=None):
        self.python, self.detail = python, detail
        functools.update_wrapper(self, python)

    @functools.cached_property
    def _numba_type_(self):
        return _compiler().type_of_instruction(self)

    def __call__(self, *arguments):
        """Do in Python what the instructions do."""
        return self.python(*arguments)


def instruction(python, detail=None):
    """Turn a function of Python into an :class:`Instruction`."""
    return python if NOTHING_IS_COMPILED else Instruction(python, detail)


class CFunction:
    """A function of C, by a name that the linker of the process finds.

    The result and the arguments have types of :mod:`ctypes`: ``c_int``, or ``c_int64`` for a
    ``long`` or a pointer.
    """

    def __init__(self, name, result, *arguments):
        self.name, self.result, self.arguments = name, result, arguments

    @functools.cached_property
    def _numba_type_(self):
        return _compiler().type_of_c_function(self)

    @functools.cached_property
    def _function(self):
        # The interpreter itself takes care of the GIL and of signals.
        if self.name.startswith(("Py", "cobre_")):
            return lambda *arguments: 0
        function = getattr(ctypes.CDLL(None, use_errno=True), self.name)
        function.restype, function.argtypes = self.result, self.arguments
        return function

    def __call__(self, *arguments):
        """Call the function from Python; here a function of CPython does nothing and returns 0."""
        return self._function(*arguments)
