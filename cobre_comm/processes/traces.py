"""Finish the traces of killed ranks.

A rank that is killed cannot write the end of its trace. The launcher sees the rank end, and makes
a readable trace of what the rank has left.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable


def finish_traces(job: str, ranks: Iterable[int]) -> None:
    """Make a Chrome trace of what each of these ranks of a job has left, if ranks were to trace."""
    folder = pathlib.Path(os.environ.get("COBRE_COMM_TRACE") or os.devnull)
    if folder.is_dir() and any(folder.glob(f"{job}.*.calls")):
        from cobre_comm.journal.chrome import add_what_is_left

        add_what_is_left(folder, job, ranks)
