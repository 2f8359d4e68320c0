"""Removes the files that an MPI leaves when ranks are killed, because they would fill /dev/shm."""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path

SHM_FOLDER = Path("/dev/shm")
PATTERNS = ("mpich_shm_*", "sm_segment.*")  # of MPICH; of Open MPI, if its starter is killed
YOUNGEST_S = 1.0  # a younger file may be of a job that has not mapped it yet


def unused_files(pattern: str) -> set[Path]:
    """Return the files of shared memory that match a pattern and that no process has mapped."""
    mapped: set[str] = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):  # a process of another user, or one that has ended
            mapped.update(re.findall(rf"{SHM_FOLDER}/\S+", maps.read_text()))
    return {path for path in SHM_FOLDER.glob(pattern) if str(path) not in mapped}


def remove_litter(began: float) -> None:
    """Remove files that MPIs have made since ``began`` (``time.time()``); keep mapped ones."""
    for pattern in PATTERNS:
        for path in unused_files(pattern):
            with contextlib.suppress(OSError):
                made = path.stat().st_mtime
                if made >= began and _is_still_unused(path, time.time() - made):
                    path.unlink()


def _is_still_unused(path: Path, age_s: float) -> bool:
    if age_s >= YOUNGEST_S:
        return True
    time.sleep(YOUNGEST_S - max(0.0, age_s))
    return path in unused_files(path.name)
