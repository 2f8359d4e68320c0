"""What killed ranks have traced becomes readable, by the launcher that saw their end."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable


def finish_traces(job: str, ranks: Iterable[int]) -> None:
    """Make Chrome traces of what these ranks of a job have left, if they were to trace."""
    folder = pathlib.Path(os.environ.get("COBRE_COMM_TRACE") or os.devnull)
    if folder.is_dir() and any(folder.glob(f"{job}.*.calls")):
        from cobre_comm.journal.chrome import add_what_is_left

        add_what_is_left(folder, job, ranks)
