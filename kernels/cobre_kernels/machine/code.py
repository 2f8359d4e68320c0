"""The machine code of the kernels, from the file that ``made.py`` chooses: loaded without numba."""

import ctypes
import functools
import importlib
import json
import mmap
import os
import sys
import threading

from cobre_kernels.machine.made import code_of_another_package, file_of_this_machine

PROT_EXEC = 4
METH_FASTCALL = 0x80  # of CPython's methodobject.h
PACKAGE = __name__.partition(".")[0]
_LOADING, _LIBRARIES = threading.RLock(), {}  # by their names


class MethodDef(ctypes.Structure):
    """CPython's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def name_functions():
    """Let machine code find a function of Python 3.13 in older ones, which name it otherwise."""
    from llvmlite import binding

    name, older = "PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet"
    if not hasattr(ctypes.pythonapi, name):
        function = getattr(ctypes.pythonapi, older)
        binding.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)


class LoadedCode:
    """Object files in an engine of LLVM, which lives as long as the process."""

    def __init__(self, objects):
        from llvmlite import binding

        _refuse_memory_that_cannot_run()
        name_functions()
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        target = binding.Target.from_triple(binding.get_process_triple()).create_target_machine()
        # llvmlite's memory manager puts an object into one piece of memory. In a process that has
        # much mapped, LLVM's own may put its parts farther from each other than code can reach.
        self._engine = binding.create_mcjit_compiler(
            binding.parse_assembly(""), target, use_lmm=True
        )
        for code in objects:
            self._engine.add_object_file(binding.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address_of(self, symbol):
        """Return the address of a function or a word; 0 if there is none of that name."""
        return self._engine.get_function_address(symbol) or self._engine.get_global_value_address(
            symbol
        )


def _refuse_memory_that_cannot_run():
    """Raise where the system lets no memory become executable, as some services are started.

    LLVM writes code into memory, and makes the memory executable then. It does not look whether
    that has succeeded.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    with mmap.mmap(-1, mmap.PAGESIZE) as page:
        address = ctypes.addressof(ctypes.c_char.from_buffer(page))
        refused = libc.mprotect(ctypes.c_void_p(address), mmap.PAGESIZE, mmap.PROT_READ | PROT_EXEC)
        reason = os.strerror(ctypes.get_errno())
        libc.mprotect(ctypes.c_void_p(address), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE)
    if refused:
        raise ImportError(
            f"this process may not make memory executable ({reason}), and the kernels of "
            "cobre_comm are machine code; allow it, by MemoryDenyWriteExecute=no in a service of "
            "systemd or by the permission execmem of SELinux"
        )


def library():
    """Return the library of this package's kernels, loaded when a process first needs it."""
    return _loaded(PACKAGE, _objects_of_this_package)


def _objects_of_this_package():
    importlib.import_module("llvmlite.binding")  # which tells what processor this process has
    return read(file_of_this_machine())


def _loaded(name, objects):
    """Return the library of that name; of threads that need it at once, one loads it.

    A library that is freed takes its addresses with it. The lock lets its own thread in: a handler
    of a signal may need kernels while the thread loads them. Then the handler's library stays.
    """
    with _LOADING:
        if name not in _LIBRARIES:
            _LIBRARIES.setdefault(name, LoadedCode(objects()))
        return _LIBRARIES[name]


def read(path):
    """Return the object files of a file."""
    table, _, codes = path.read_bytes().partition(b"\n")
    objects, at = [], 0
    for length, _ in json.loads(table)["objects"]:
        objects.append(codes[at : at + length])
        at += length
    return objects


def _library_of(kernel):
    """Return the library of a kernel; that of another package is compiled when it is needed."""
    if kernel.symbol.partition(".")[0] == PACKAGE:
        return library()
    made = _objects_of(kernel)  # before the lock is taken: numba, which compiles, has its own
    return _loaded(kernel.symbol, lambda: made)


@functools.cache
def _objects_of(kernel):
    return [code_of_another_package(kernel)]


def address_of(kernel):
    """Return the address of a kernel."""
    return _library_of(kernel).address_of(kernel.symbol)


def function_of(kernel):
    """Return a kernel as a builtin function of integers, whose code and name live for ever."""
    address = _library_of(kernel).address_of(f"python:{kernel.symbol}")
    name = kernel.function.__name__.encode()
    definition = kept(MethodDef(name, address, METH_FASTCALL, None))
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    return make(ctypes.addressof(definition), None, None)


def kept(value):
    """Let a value live as long as the process: a function may run while Python shuts down."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))
    return value
