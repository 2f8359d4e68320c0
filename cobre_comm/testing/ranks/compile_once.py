"""Ranks that call the same cached function at the same time: one compiles it, the others load it.

Without this module, numba compiles such a function in every rank at the same time. And if two ranks
save different signatures of one function at the same time, the index of numba's cache keeps only
one signature. This costs tests seconds, because in a fresh checkout most cases call a function for
the first time.
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

NAME = ".compiling"  # a file in each folder of numba's cache; each function has one byte of it
LAST_BYTE = 2**31
LOOK_S = 0.01
LONGEST_S = 20.0  # longer than numba compiles for one function of a test


def once_in_all_ranks() -> None:
    """Make numba, if this process has imported it, compile in turn with the other ranks."""
    if "numba" in sys.modules:
        _change_numba()


@functools.cache
def _change_numba() -> None:
    from cobre_kernels.machine.compiling.numba_internals import Dispatcher, global_compiler_lock

    compile_alone = Dispatcher.compile

    @functools.wraps(compile_alone)
    def compile_in_turn(self: Any, sig: Any) -> Any:
        # numba's own lock is taken first, here as in the call below. If the order differed, two
        # threads of this process could hold one lock each and wait for each other.
        with global_compiler_lock, _turn(self, sig), _without_collections():
            return compile_alone(self, sig)

    Dispatcher.compile = compile_in_turn


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Collect no garbage in the block, because few of numba's many objects are garbage."""
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
    """Lock the function's byte, or wait until another rank has compiled this signature.

    The operating system unlocks the byte if the process ends. A rank that is stopped while it
    compiles holds the others up for no longer than `LONGEST_S`.
    """
    folder = getattr(dispatcher._cache, "cache_path", None)
    file = None if folder is None else _lock_file(folder)
    code = dispatcher.py_func.__code__
    byte = zlib.crc32(f"{code.co_filename}:{code.co_firstlineno}".encode()) % LAST_BYTE
    until = time.monotonic() + LONGEST_S
    while file is not None and not _is_cached(dispatcher, sig) and time.monotonic() < until:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except (BlockingIOError, PermissionError):  # another rank compiles this function
            time.sleep(LOOK_S)
            continue
        except OSError:  # the file system has no locks
            break
        try:
            yield
        finally:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)
        return
    yield


def _is_cached(dispatcher: Any, sig: Any) -> bool:
    """Whether numba would load this signature from its cache; asks the index that numba asks."""
    cache = dispatcher._cache
    key = cache._index_key(sig, dispatcher.targetctx.codegen())
    try:
        return key in cache._cache_file._load_index()
    except OSError:
        return False


@functools.cache
def _lock_file(folder: str) -> int | None:
    """Return the descriptor of a folder's file, which stays open; None if there can be no file."""
    path = pathlib.Path(folder)
    with contextlib.suppress(OSError):
        path.mkdir(parents=True, exist_ok=True)
        return os.open(path / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    return None
