"""Loads the machine code of the kernels, without numba, from the file that ``made.py`` chooses.

A shared library is mapped from its file. If there are only object files, LLVM loads them.
"""

import ctypes
import functools
import importlib
import json
import mmap
import os
import sys
import threading

from cobre_kernels.machine import made, version
from cobre_kernels.machine.compiled import NOTHING_IS_COMPILED
from cobre_kernels.machine.target import LIBRARY, level_of

PROT_EXEC = 4
METH_FASTCALL = 0x80  # of CPython's methodobject.h
RUNS_HERE = "cobre_runs_here"  # a library's function: 1 if the processor has the library's level
SOURCES = "cobre_sources_"  # begins the name of a library's word; the hash of the sources ends it
CURRENT_STATE = "cobre_current_state"  # our name for a function that CPython renamed:
CURRENT_STATE_NAMES = "PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet"  # 3.13, 3.12
PACKAGE = __name__.partition(".")[0]
_LOADING, _LIBRARIES = threading.RLock(), {}  # the libraries, by their names


class MethodDef(ctypes.Structure):
    """CPython's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def name_functions():
    """Let object files find the function of CPython that was renamed between two versions."""
    from llvmlite import binding

    known = (getattr(ctypes.pythonapi, name, None) for name in CURRENT_STATE_NAMES)
    function = next(filter(None, known))
    binding.add_symbol(CURRENT_STATE, ctypes.cast(function, ctypes.c_void_p).value)


def native_target(**options):
    """Return this machine as a target of LLVM, with options for the code that LLVM makes."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_triple(binding.get_process_triple()).create_target_machine(**options)


class MappedCode:
    """A shared library. It stays mapped, because records and functions keep its addresses.

    Raises
    ------
    OSError
        If the library cannot be mapped: its file may be where the system executes nothing.
    UnfitCode
        If the processor lacks the library's level, or another file has replaced the library.
    """

    def __init__(self, path):
        self.path = path
        self._library = ctypes.PyDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        if not self.address_of(SOURCES + version.source_hash()) or not self._library[RUNS_HERE]():
            raise UnfitCode(path)

    def address_of(self, symbol):
        """Return the address of a function or a word; 0 if nothing has that name."""
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(self._library, symbol))
        except ValueError:
            return 0


class UnfitCode(Exception):
    """A file of machine code that this process cannot use."""


class LoadedCode:
    """Object files in an engine of LLVM, which exists until the end of the process."""

    def __init__(self, objects, path=None):
        from llvmlite import binding

        self.path = path
        _refuse_memory_that_cannot_run()
        name_functions()
        target = native_target()
        # llvmlite's memory manager puts an object into one piece of memory. LLVM's own manager may
        # put the parts of an object too far apart for code to reach, if the process has mapped much
        # memory.
        self._engine = binding.create_mcjit_compiler(
            binding.parse_assembly(""), target, use_lmm=True
        )
        for code in objects:
            self._engine.add_object_file(binding.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address_of(self, symbol):
        """Return the address of a function or a word; 0 if nothing has that name."""
        return self._engine.get_function_address(symbol) or self._engine.get_global_value_address(
            symbol
        )


def _refuse_memory_that_cannot_run():
    """Raise if the system lets no memory of this process become executable, as in some services.

    LLVM writes code into memory, then makes the memory executable, and does not check whether this
    has succeeded.
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


def description():
    """Return the level of the machine code that this process runs, and how the code is loaded."""
    if NOTHING_IS_COMPILED:
        return "none: NUMBA_DISABLE_JIT is set"
    path = library().path
    loaded = "a shared library" if path.suffix == LIBRARY else "object files"
    return f"{level_of(path)}, {loaded}"


def library():
    """Return the library of this package's kernels; the first call in a process loads it."""
    return _loaded(PACKAGE, _code_of_this_package)


def _code_of_this_package():
    """Return the code of the best file that this process can load."""
    refused = frozenset()
    while True:
        path = made.file_of_this_machine(refused)
        if path.suffix == LIBRARY:
            try:
                return MappedCode(path)
            except (OSError, UnfitCode):
                refused |= {path}
        elif "llvmlite.binding" in sys.modules:
            return LoadedCode(read(path), path)
        importlib.import_module("llvmlite.binding")  # then levels() asks LLVM for the processor


def _loaded(name, load):
    """Return the library of that name; if several threads need it at once, only one loads it.

    So no library has to be freed while its addresses are in use. The lock is reentrant, because a
    signal handler may need kernels while its own thread loads them. In this case the library that
    the handler has loaded stays.
    """
    with _LOADING:
        if name not in _LIBRARIES:
            _LIBRARIES.setdefault(name, load())
        return _LIBRARIES[name]


def read(path):
    """Return the object files that a file of machine code contains."""
    codes, _, table = path.read_bytes().rpartition(b"\n")
    objects, at = [], 0
    for length, _ in json.loads(table)["objects"]:
        objects.append(codes[at : at + length])
        at += length
    return objects


def _library_of(kernel):
    """Return the library of a kernel; if the kernel is of another package, compile it if needed."""
    if kernel.symbol.partition(".")[0] == PACKAGE:
        return library()
    objects = _objects_of(kernel)  # before our lock is taken, because numba takes a lock of its own
    return _loaded(kernel.symbol, lambda: LoadedCode(objects))


@functools.cache
def _objects_of(kernel):
    return [made.builder().code_of_another_package(kernel, made.folder_of_others())]


def address_of(kernel):
    """Return the address of a kernel."""
    return _library_of(kernel).address_of(kernel.symbol)


def function_of(kernel):
    """Return a kernel as a builtin function of integers; its code and its name are never freed."""
    address = _library_of(kernel).address_of(f"python:{kernel.symbol}")
    name = kernel.function.__name__.encode()
    definition = kept(MethodDef(name, address, METH_FASTCALL, None))
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    return make(ctypes.addressof(definition), None, None)


def kept(value):
    """Keep a value until the end of the process: a function may run while Python shuts down."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))
    return value
