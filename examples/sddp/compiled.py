"""How numba compiles this example's functions, and compilation by one rank for all ranks.

With `_nrt=False`, numba does not count references. These functions allocate nothing, and work on
arrays that the Python caller owns. If numba counted, it would count every array of every named
tuple that is passed or unpacked, and compilation would take a third longer. Functions that call the
communicator are compiled with counting, because the code that they inline needs the counts. So they
get single arrays instead of tuples.

Functions that only compiled code calls are routines, which become machine code as parts of their
callers. If they were under numba's `njit`, even without its wrappers for Python, the compilation
would take 69 s of CPU time in place of 22 s. `routine` is no public name of `cobre_comm`, so other
programs use `njit`.
"""

import contextlib
import fcntl
import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from cobre_comm.contract.routine import routine

FROM_PYTHON = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
"""Options of functions that Python also calls."""

plain = routine(nogil=True, error_model="numpy", _nrt=False)
"""Decorator of functions that only compute."""

calling = routine(nogil=True, error_model="numpy", _nrt=True)
"""Decorator of functions that call the communicator."""


def forget_stale_code(folder: Path = Path(__file__).parent) -> bool:
    """Delete compiled code of other sources than these; tell whether there was any.

    numba's cache compares only the file of the cached function, but the code of `trainer.py` has
    functions of other files compiled into it. (The user has to empty a folder given by
    `NUMBA_CACHE_DIR`.)
    """
    digest = hashlib.sha256()
    for source in sorted(folder.rglob("*.py")):
        digest.update(str(source.relative_to(folder)).encode() + source.read_bytes())
    cache = folder / "__pycache__"
    stamp = cache / "sources.sha256"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return False
    stale = [*folder.rglob("__pycache__/*.nbi"), *folder.rglob("__pycache__/*.nbc")]
    with contextlib.suppress(OSError):  # numba does not use a cache in a read-only folder
        for file in stale:
            file.unlink(missing_ok=True)
        cache.mkdir(exist_ok=True)
        draft = stamp.with_suffix(f".{os.getpid()}")
        draft.write_text(digest.hexdigest())
        draft.replace(stamp)
    return bool(stale)


@contextlib.contextmanager
def compiled_by_one(source: Path = Path(__file__)) -> Iterator[None]:
    """Let the first rank that arrives compile; the others then load its code from the cache.

    Use this outside of all collectives, so that no timeout runs while a rank compiles. The lock is
    on this source file, because a file can be locked without the permission to write to it.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # if the file cannot be locked, each rank compiles
            fcntl.flock(stack.enter_context(source.open()), fcntl.LOCK_EX)
        if next(source.parent.rglob("__pycache__/*.nbi"), None) is None:
            text = "compiling the example (once per machine and version): half a minute or more..."
            print(text, file=sys.stderr, flush=True)
        yield


forget_stale_code()
