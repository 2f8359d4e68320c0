"""Finishes the traces of killed ranks.

A killed rank cannot write the end of its trace. The launcher sees the rank end, and makes a Chrome
trace of the rows that the rank has left.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable

from cobre_comm.reports.trace_folder import trace_folder


def finish_traces(job: str, ranks: Iterable[int]) -> None:
    """Make Chrome traces of the rows that these ranks have left, if the job is traced."""
    folder = pathlib.Path(trace_folder() or os.devnull)
    if folder.is_dir() and any(folder.glob(f"{job}.*.calls")):
        from cobre_comm.journal.chrome import add_what_is_left

        add_what_is_left(folder, job, ranks)
