"""Files that MPI libraries leave in shared memory when their ranks are killed.

MPICH gives its segment a name that only its ranks know, and removes the name in MPI_Finalize. While
a rank runs, its mappings show the name.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

_SEGMENT = re.compile(r" (/dev/shm/(?:mpich_shm_|sm_segment\.|vader_segment\.)\S+)$", re.MULTILINE)


def segments_of(pid: int) -> set[str]:
    """Return the files of MPI's shared memory that a process has mapped."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text()
    except OSError:  # the process has ended
        return set()
    return set(_SEGMENT.findall(maps))


def remove(segments: set[str]) -> None:
    """Remove those of the files that still exist; call this when all ranks have ended."""
    for name in segments:
        with contextlib.suppress(OSError):
            Path(name).unlink()
