"""What killed ranks have traced becomes readable, by the launcher that saw their end."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterable


def finish_traces(ranks: Iterable[int]) -> None:
    """Make Chrome traces of what these ranks have left, if they were to trace."""
    folder = pathlib.Path(os.environ.get("COBRE_COMM_TRACE") or os.devnull)
    if folder.is_dir() and any(folder.glob("*.calls")):
        from cobre_comm.journal.chrome import add_what_is_left

        with contextlib.suppress(OSError):  # the files stay as they are
            add_what_is_left(folder, ranks)
