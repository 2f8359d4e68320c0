"""Mappings of files; a mapping ends with the last array over it, and holds no descriptor.

``mmap.mmap`` holds a descriptor of its file as long as it exists; before Python 3.13 this cannot be
avoided. So a program with a thousand regions would reach its limit of open files.

Sources: mmap(2).
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import operator
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

FAILED = ctypes.c_void_p(-1).value
_FIXED = 0x10  # MAP_FIXED of Linux and macOS; the module mmap does not name it
_PLACE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)


class Mapping(mmap.mmap):
    """Pages of this process, unmapped when the last array over them is gone.

    Unmapping runs no Python code, because there an exception of a signal handler would be lost.
    Only the pages of a region have a ``listing``, which is destroyed before the pages.
    """

    listing: Listing | None = None


class Listing:
    """Takes a region off the table of regions before the pages of the region are unmapped.

    ``strike_off`` is a call in C, because an exception that a signal handler raised in Python code
    would be lost here too.
    """

    def __init__(self, strike_off: Callable[[], None]) -> None:
        self._strike_off = strike_off

    __del__ = property(operator.attrgetter("_strike_off"))


@functools.cache
def libc() -> ctypes.CDLL:
    """Return the C library, with the prototype of ``mmap``."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
    ]  # fmt: skip
    return library


def map_file(fd: int, nbytes: int, *, writable: bool = True) -> NDArray[np.uint8]:
    """Map a file that other processes may have mapped; the descriptor may be closed afterwards.

    NumPy believes that the memory is writable in any case; without ``writable`` a store ends the
    process.
    """
    memory = np.frombuffer(Mapping(-1, nbytes, flags=_PLACE), np.uint8)
    access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    # The file replaces the anonymous pages of ``memory``, so ``Mapping`` holds no descriptor.
    address = libc().mmap(memory.ctypes.data, nbytes, access, mmap.MAP_SHARED | _FIXED, fd, 0)
    if address == FAILED:
        code = ctypes.get_errno()
        raise OSError(code, f"{os.strerror(code)} when {nbytes} bytes were to be mapped")
    return memory


def before_unmapping(memory: NDArray[np.uint8], strike_off: Callable[[], None]) -> None:
    """Call ``strike_off`` before the pages of an array of :func:`map_file` are unmapped."""
    pages: Any = memory.base
    pages.obj.listing = Listing(strike_off)
