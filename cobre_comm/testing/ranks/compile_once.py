"""Ranks that call the same cached function at the same time: one compiles it, the others load it.

By itself numba compiles such a function in every rank at the same time. And if two ranks save
different signatures of one function at the same time, numba's index keeps one of them alone. Both
cost tests seconds, because most cases are the first call of their kind in a fresh checkout.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import gc
import os
import pathlib
import sys
import time
import zlib
from collections.abc import Iterator
from typing import Any

NAME = ".compiling"  # in each folder of numba's cache; each function has a byte of it
LAST_BYTE = 2**31
LOOK_S = 0.01
LONGEST_S = 20.0  # what numba compiles for one function of a test takes less


def once_in_all_ranks() -> None:
    """Let numba, if this process has imported it, take turns with the other ranks."""
    if "numba" in sys.modules:
        _change_numba()


@functools.cache
def _change_numba() -> None:
    from cobre_kernels.machine.compiling.numba_internals import Dispatcher, global_compiler_lock

    compile_alone = Dispatcher.compile

    @functools.wraps(compile_alone)
    def compile_in_turn(self: Any, sig: Any) -> Any:
        # numba's own lock comes first, as in the call below. In the reverse order two threads of
        # this process could hold one of the locks each, and wait for each other.
        with global_compiler_lock, _turn(self, sig), _without_collections():
            return compile_alone(self, sig)

    Dispatcher.compile = compile_in_turn


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Keep Python from collecting: numba makes little garbage, and many objects to look at."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def _turn(dispatcher: Any, sig: Any) -> Iterator[None]:
    """Hold the function's byte, unless the signature is in the cache when the byte is free.

    The kernel releases the byte if this process ends meanwhile. A rank that is stopped while it
    compiles is waited for no longer than `LONGEST_S`.
    """
    folder = getattr(dispatcher._cache, "cache_path", None)
    file = None if folder is None else _lock_file(folder)
    code = dispatcher.py_func.__code__
    byte = zlib.crc32(f"{code.co_filename}:{code.co_firstlineno}".encode()) % LAST_BYTE
    until = time.monotonic() + LONGEST_S
    while file is not None and not _is_cached(dispatcher, sig) and time.monotonic() < until:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except (BlockingIOError, PermissionError):  # another rank compiles
            time.sleep(LOOK_S)
            continue
        except OSError:  # a file system without locks
            break
        try:
            yield
        finally:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)
        return
    yield


def _is_cached(dispatcher: Any, sig: Any) -> bool:
    """Whether numba would load this signature from its cache; numba asks the same index."""
    cache = dispatcher._cache
    key = cache._index_key(sig, dispatcher.targetctx.codegen())
    try:
        return key in cache._cache_file._load_index()
    except OSError:
        return False


@functools.cache
def _lock_file(folder: str) -> int | None:
    """Return the descriptor of a folder's file, which stays open; None where none can be made."""
    path = pathlib.Path(folder)
    with contextlib.suppress(OSError):
        path.mkdir(parents=True, exist_ok=True)
        return os.open(path / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    return None
