"""Mappings of files that go with their last view, and hold no descriptor.

``mmap.mmap`` keeps a descriptor of its own as long as it lives (it can be told not to from Python
3.13 on). A program with a thousand regions would meet its limit of open files.

Sources: mmap(2), munmap(2).
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

FAILED = ctypes.c_void_p(-1).value


class Mapping:
    """Pages of this process, unmapped when the last array over them goes.

    Parameters
    ----------
    address, nbytes : int
        Where they are, and what an array over them shows.
    """

    # Of a mapping that is half made, because its rank was interrupted.
    strike_off: Callable[[], None] | None = None
    _unmap: Callable[..., Any] | None = None

    def __init__(self, address: int, nbytes: int) -> None:
        self._pages = address, nbytes
        self._unmap = libc().munmap  # loaded now: __del__ may run at exit
        self.__array_interface__ = {
            "data": (address, False),
            "shape": (nbytes,),
            "typestr": "|u1",
            "version": 3,
        }

    def __del__(self) -> None:
        if self.strike_off is not None:
            self.strike_off()
        if self._unmap is not None:
            self._unmap(*self._pages)


@functools.cache
def libc() -> ctypes.CDLL:
    """Return the C library, with the prototypes of what this package calls."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
    ]  # fmt: skip
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return library


def map_file(fd: int, nbytes: int, *, writable: bool = True) -> NDArray[np.uint8]:
    """Map a file that other processes may have mapped; the descriptor may be closed at once.

    Memory that is not writable is said to be in any case: a store to it ends the process.
    """
    access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    address = libc().mmap(None, nbytes, access, mmap.MAP_SHARED, fd, 0)
    if address == FAILED:
        code = ctypes.get_errno()
        raise OSError(code, f"{os.strerror(code)} when {nbytes} bytes were to be mapped")
    return np.asarray(Mapping(address, nbytes))
