"""Methods of communicators in compiled code, set on the class of a backend.

Each method is a method descriptor, like the methods of a class written in C. It replaces the Python
method of the same name, which still serves unusual arguments, by ``kernel_backend.serve_slowly``.
``fast_path.py`` of the kernels has the compiled functions.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable

import numpy as np
from cobre_kernels.collective import dtypes
from cobre_kernels.collective.from_python.fast_path import METHODS, slow_kernel
from cobre_kernels.collective.from_python.objects import PYTHON, layout_is_known
from cobre_kernels.machine.code import METH_FASTCALL, MethodDef, kept
from numpy.typing import NDArray

from cobre_comm.reduce_op import ReduceOp

METH_NOARGS, METH_KEYWORDS = 0x4, 0x2  # of CPython's methodobject.h
SIGNATURES = {
    "barrier": "($self, /)",
    "broadcast": "($self, /, buf, root=0)",
    "allreduce": "($self, /, send, recv, op=0)",
    "allgatherv": "($self, /, send, recv, counts, displs)",
}


def install(backend: type, slow_path: Callable[..., None]) -> int:
    """Give a backend's class its fast methods, once; return the address of their record.

    Subclasses that users make of the backend inherit the methods. ``slow_path`` gets the
    communicator, the operation, the outcome, the names of the keywords or None, and all values.
    ``slow_path`` serves the call, or raises.
    """
    if not layout_is_known():
        return 0  # the Python methods serve all calls
    _install_methods(backend)
    return int(_python_words(slow_path).ctypes.data)


@functools.cache
def _install_methods(backend: type) -> None:
    make_descriptor = ctypes.pythonapi.PyDescr_NewMethod
    make_descriptor.restype = ctypes.py_object
    make_descriptor.argtypes = [ctypes.py_object, ctypes.POINTER(MethodDef)]
    for name, kernel in METHODS.items():
        if name not in vars(backend):
            doc = f"{name}{SIGNATURES[name]}\n--\n\n{getattr(backend, name).__doc__}"
            flags = METH_NOARGS if name == "barrier" else METH_FASTCALL | METH_KEYWORDS
            definition = kept(MethodDef(name.encode(), kernel.address, flags, doc.encode()))
            setattr(backend, name, make_descriptor(backend, definition))


@functools.cache
def _python_words(slow_path: Callable[..., None]) -> NDArray[np.int64]:
    words: NDArray[np.int64] = kept(PYTHON.array())
    python = PYTHON.of(words)
    python.none, python.array_type, python.int_type = id(None), id(np.ndarray), id(int)
    python.op_type, python.slow_path = id(ReduceOp), id(kept(slow_path))
    python.slow_kernel = slow_kernel.address
    python.dtypes = kept(np.array(dtypes.BY_TYPE_NUMBER)).ctypes.data
    python.broadcast_names = _names("buf", "root")
    python.allreduce_names = _names("send", "recv", "op")
    python.allgatherv_names = _names("send", "recv", "counts", "displs")
    return words


def _names(*names: str) -> int:
    """Return the address of a table of names: the interned strings that Python's calls pass."""
    words = kept(np.array([id(kept(sys.intern(name))) for name in names]))
    return int(words.ctypes.data)
