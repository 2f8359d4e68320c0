"""``COBRE_COMM_TRACE``: the folder of traces, which stays the same after a change of directory."""

from __future__ import annotations

import contextlib
import os

VARIABLE = "COBRE_COMM_TRACE"


def trace_folder() -> str:
    """Return the folder of traces; "" if nothing is to be traced.

    The first call makes the path absolute, for this process and the processes that it starts,
    because a program may change its directory later. A launcher calls this before its ranks do.
    """
    folder = os.environ.get(VARIABLE, "")
    if folder and not os.path.isabs(folder):  # noqa: PTH117  # pathlib is slow to import
        with contextlib.suppress(FileNotFoundError):  # this process's directory is gone
            folder = os.environ[VARIABLE] = os.path.abspath(folder)  # noqa: PTH100
    return folder
