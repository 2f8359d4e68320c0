"""Lets numba note the CPU seconds of each compilation, in any process that loads numba.

numba finds `init` by an entry point, and calls it. So programs of tests need not import this
module.
"""

import os
import threading
import time

from numba.core import event  # noqa: TID251  # its public listeners have no other name

NOTES = "TEST_COMPILATIONS"  # the variable that names the file of the notes
_thread = threading.local()


class _Listener(event.Listener):
    """Writes a line for each compilation that is not part of another compilation."""

    def on_start(self, event):
        _thread.depth = getattr(_thread, "depth", 0) + 1
        if _thread.depth == 1:
            _thread.began = time.thread_time()

    def on_end(self, event):
        _thread.depth -= 1
        if _thread.depth == 0:
            # Cached code is compiled by the first test that calls the function, and serves all
            # later tests.
            cache = getattr(event.data["dispatcher"], "_cache", None)
            is_shared = getattr(cache, "cache_path", None) is not None
            line = f"{time.thread_time() - _thread.began:.4f} {is_shared:d}\n".encode()
            notes = os.open(os.environ[NOTES], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(notes, line)  # at once, because the process may be killed
            os.close(notes)


def init():
    if NOTES in os.environ:
        event.register("numba:compile", _Listener())
